import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../../test/sluice.ts'
import { findChromium } from './find-chromium.ts'

const MISSING = { code: 'E_BROWSER_MISSING', verdict: 'halt' }

function program(folder: string, name: string): string {
  const path = join(folder, name)
  writeFileSync(path, '#!/bin/sh\n', { mode: 0o755 })
  return path
}

test('takes the headless shell from its usual place, then from PATH, and a full browser last', () => {
  using folder = temporaryFolder()
  using bin = temporaryFolder()
  const places = [join(folder.path, 'chromium-headless-shell')]
  const look = () => findChromium(undefined, { env: { PATH: `/nowhere:${bin.path}` }, places })
  assert.throws(look, MISSING)
  const browser = program(bin.path, 'chromium')
  assert.deepEqual(look(), { path: browser, isShell: false })
  const shell = program(bin.path, 'chrome-headless-shell')
  assert.deepEqual(look(), { path: shell, isShell: true })
  program(folder.path, 'chromium-headless-shell')
  assert.deepEqual(look(), { path: places[0], isShell: true })
  chmodSync(places[0]!, 0o644)
  assert.deepEqual(look(), { path: shell, isShell: true }, 'what cannot be run is not taken')
})

test('an executable given by the option or by SLUICE_CHROME comes first, and must exist', () => {
  using folder = temporaryFolder()
  const named = program(folder.path, 'my-browser')
  const places = [program(folder.path, 'chromium-headless-shell')]
  const env = { PATH: '/nowhere', SLUICE_CHROME: named }
  assert.equal(findChromium(undefined, { env, places }).path, named)
  assert.equal(findChromium('/bin/true', { env, places }).path, '/bin/true')
  assert.throws(() => findChromium('/no/such/browser', { env, places }), MISSING)
  assert.throws(() => findChromium(folder.path, { env, places }), MISSING)
})
