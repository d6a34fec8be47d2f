/** Chromium for tests: this machine's headless shell, or Debian's, unpacked; or the program named by `SLUICE_TEST_CHROME`. */
import { existsSync, globSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { findProgram, type Service } from './find-program.ts'

export const CHROMIUM: Service = {
  name: 'Chromium',
  program: 'usr/lib/chromium/chromium-headless-shell',
  package: 'chromium-headless-shell',
  urlVariable: 'SLUICE_TEST_CHROME',
}

/** A program that can be run directly, for `executable` or `SLUICE_CHROME`. */
export async function chromiumForTests(): Promise<string> {
  const given = process.env['SLUICE_TEST_CHROME'] ?? ''
  if (given !== '') return given
  const { path, env } = await findProgram(CHROMIUM)
  return env['LD_LIBRARY_PATH'] === process.env['LD_LIBRARY_PATH'] ? path : wrapped(path, env['LD_LIBRARY_PATH']!)
}

/** A script beside it that sets its library path, so that callers only need its path. */
function wrapped(path: string, libraryPath: string): string {
  const script = join(dirname(path), 'run-unpacked')
  if (existsSync(script)) return script
  const deeper = libraryPath.split(':').flatMap((folder) => globSync('pulseaudio', { cwd: folder }).map((name) => join(folder, name))) // biome-ignore format: one line reads better
  const libraries = [...libraryPath.split(':'), ...deeper].join(':')
  const text = `#!/bin/sh\nexport LD_LIBRARY_PATH='${libraries}'\nexec '${path}' "$@"\n`
  // Moved into place atomically: two test files may do this at once.
  writeFileSync(`${script}.${process.pid}`, text, { mode: 0o755 })
  renameSync(`${script}.${process.pid}`, script)
  return script
}
