/** The bench does not wait for a site that is dead. */
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../../test/sluice.ts'
import { siteOf } from './bench.ts'

test('a site that exits before it listens is an error, not an endless wait', async () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'site.mjs')
  writeFileSync(file, 'process.exit(7)')
  await assert.rejects(siteOf(fork(file)), { code: 'E_SERVICE', message: /ended before it listened \(7\)/ })
  writeFileSync(file, 'process.kill(process.pid, "SIGKILL")')
  await assert.rejects(siteOf(fork(file)), { code: 'E_SERVICE', message: /\(SIGKILL\)/ })
  await assert.rejects(siteOf(fork(join(folder.path, 'none.mjs'), { silent: true })), { code: 'E_SERVICE' })
})
