/** Starts a Chromium that can reach nothing but an egress proxy, keeps no data, and exits when we do. */
import { mkdirSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser } from 'puppeteer-core'
import { ScrapeError } from '../../core/errors.ts'
import { optionalPackage } from '../../core/optional-package.ts'
import { findChromium } from './find-chromium.ts'
import type { Settings } from './options.ts'

const LAUNCH_MS_MAX = 30_000
/** Containers often have only 64 MB of /dev/shm, and Chromium crashes when it is full. */
const SHARED_MEMORY_BYTES_MIN = 512 * 1024 ** 2

export interface LaunchOptions {
  settings: Settings
  /** An egress proxy that lets nothing through: the browser's own requests, outside of any page, are refused. */
  closedProxy: string
  /** Created by us, removed by the caller. */
  folder: string
}

interface Launched {
  browser: Browser
  pid: number
  /** For people to read: what was started, and any warnings. */
  reason: string
}

/** Throws `E_BROWSER_MISSING`, `E_BROWSER_LAUNCH`, `E_PACKAGE_MISSING`. */
export async function launchChromium({ settings, closedProxy, folder }: LaunchOptions): Promise<Launched> {
  const { path, isShell } = findChromium(settings.executable)
  const isRoot = process.getuid?.() === 0
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  // 80 MB of memory, so the driver is loaded only if a browser is opened.
  const { launch } = await optionalPackage('a browser needs', 'puppeteer-core', () => import('puppeteer-core'))
  try {
    const browser = await launch({
      executablePath: path,
      headless: isShell ? 'shell' : true,
      // No debugging port that others could find; and Chromium exits when the pipe closes, however we die.
      pipe: true,
      userDataDir: join(folder, 'profile'),
      env: environment(folder),
      args: flags(settings, closedProxy, isRoot),
      defaultViewport: null,
      issuesEnabled: false,
      timeout: LAUNCH_MS_MAX,
      protocolTimeout: settings.timeoutMs + settings.hangMsMax,
      handleSIGINT: false,
      handleSIGTERM: false,
      handleSIGHUP: false,
    })
    const version = await browser.version()
    const warning = isRoot ? ', WITHOUT ITS SANDBOX because we run as root' : ''
    return { browser, pid: browser.process()!.pid!, reason: `${version}${warning}` }
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    const notes = text.split('\n').map((line) => line.trim()).filter(Boolean).slice(0, 8) // biome-ignore format: one chain
    throw new ScrapeError('E_BROWSER_LAUNCH', `${path} does not start: ${notes[0] ?? ''}`, { notes, cause: error })
  }
}

/** Only the variables that programs need to run at all, so that none of our secrets are passed on. */
function environment(folder: string): Record<string, string> {
  const env: Record<string, string> = { HOME: folder, TMPDIR: folder, XDG_CONFIG_HOME: folder, XDG_CACHE_HOME: folder }
  for (const name of ['PATH', 'LANG', 'LC_ALL', 'TZ', 'LD_LIBRARY_PATH', 'FONTCONFIG_FILE', 'FONTCONFIG_PATH']) {
    const value = process.env[name]
    if (value !== undefined) env[name] = value
  }
  return env
}

function flags(settings: Settings, closedProxy: string, isRoot: boolean): string[] {
  return [
    `--user-agent=${settings.userAgent}`,
    `--proxy-server=${closedProxy}`,
    '--proxy-bypass-list=<-loopback>', // loopback goes through the proxy as well
    // Names are resolved behind the egress proxy; a lookup here would leak them, and could bypass the proxy.
    '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1',
    '--disable-quic',
    '--force-webrtc-ip-handling-policy=disable_non_proxied_udp',
    `--js-flags=--max-old-space-size=${Math.max(64, Math.floor(settings.pageBytesMax / 1024 ** 2))}`,
    '--window-size=1280,800',
    '--mute-audio',
    '--disable-gpu',
    '--disable-breakpad',
    ...(hasLittleSharedMemory() ? ['--disable-dev-shm-usage'] : []),
    ...(isRoot ? ['--no-sandbox'] : []),
  ]
}

function hasLittleSharedMemory(): boolean {
  try {
    const { blocks, bsize } = statfsSync('/dev/shm')
    return blocks * bsize < SHARED_MEMORY_BYTES_MIN
  } catch {
    return true
  }
}
