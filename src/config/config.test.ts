import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resolveConfig } from './config.ts'

test('numeric limits from flags and variables become numbers', async () => {
  const { limits } = await resolveConfig({
    flags: { rps: '2.5', concurrency: '4', circuit: '12', timeout: '500' },
    env: { SLUICE_PAGES: '7' },
    cwd: '/nowhere',
  })
  assert.deepEqual(limits, {
    perHost: { concurrency: 4, rps: 2.5, circuit: 12 },
    concurrency: 4,
    pages: 7,
    timeout: '500',
  })
})
