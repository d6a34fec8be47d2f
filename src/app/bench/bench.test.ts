/** The benchmark does not wait for a dead site. */
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../../test/sluice.ts'
import { siteOf } from './bench.ts'

test('throws instead of waiting forever when the site exits before it listens', async () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'site.mjs')
  writeFileSync(file, 'process.exit(7)')
  await assert.rejects(siteOf(fork(file)), { code: 'E_SERVICE', message: /ended before it listened \(7\)/ })
  writeFileSync(file, 'process.kill(process.pid, "SIGKILL")')
  await assert.rejects(siteOf(fork(file)), { code: 'E_SERVICE', message: /\(SIGKILL\)/ })
  await assert.rejects(siteOf(fork(join(folder.path, 'none.mjs'), { silent: true })), { code: 'E_SERVICE' })
})
