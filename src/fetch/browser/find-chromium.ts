/** Chooses the browser to run: the one that was specified, or else the first of the usual ones on this machine. */
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { ScrapeError } from '../../core/errors.ts'

/**
 * The headless shell first: half the memory and twice the pages per second of a full Chromium. Debian's program on PATH is a
 * script that leaves a shell running next to the browser, so the real binary is looked for first.
 */
const PLACES = [
  '/usr/lib/chromium/chromium-headless-shell',
  '/usr/lib/chromium-headless-shell/chromium-headless-shell',
  '/opt/chrome-headless-shell/chrome-headless-shell',
]
const SHELLS = ['chromium-headless-shell', 'chrome-headless-shell', 'headless_shell']
const BROWSERS = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

interface Found {
  path: string
  /** Supports only the old, lean headless mode. */
  isShell: boolean
}

/** Throws `E_BROWSER_MISSING`. `places` are tried before PATH; tests pass their own, so that they pass on any machine. */
export function findChromium(
  named: string | undefined,
  { env = process.env, places = PLACES }: { env?: NodeJS.ProcessEnv; places?: readonly string[] } = {},
): Found {
  const wanted = named ?? env['SLUICE_CHROME'] ?? ''
  if (wanted !== '') {
    if (!isProgram(wanted)) throw missing(`${wanted} is not a program`)
    return { path: wanted, isShell: !BROWSERS.some((name) => wanted.endsWith(`/${name}`)) }
  }
  const folders = (env['PATH'] ?? '').split(delimiter).filter(Boolean)
  const onPath = (names: readonly string[]) => names.flatMap((name) => folders.map((folder) => join(folder, name)))
  const shell = [...places, ...onPath(SHELLS)].find(isProgram)
  if (shell !== undefined) return { path: shell, isShell: true }
  const browser = onPath(BROWSERS).find(isProgram)
  if (browser !== undefined) return { path: browser, isShell: false }
  throw missing('there is no Chromium on this machine')
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

function missing(why: string): ScrapeError {
  return new ScrapeError('E_BROWSER_MISSING', why)
}
