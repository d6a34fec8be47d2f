/** `sluice bench` measures a real run, and rejects invalid flags. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sluice } from '../../test/sluice.ts'

test('bench scrapes its own site and reports how fast that was', async () => {
  const { code, stdout, stderr } = await sluice(['bench', '--pages', '60', '--concurrency', '4', '--json'])
  assert.equal(code, 0, stderr)
  const result = JSON.parse(stdout)
  assert.equal(result.pages, 60)
  assert.ok(result.bytes > 60 * 8000, `${result.bytes} bytes`)
  assert.ok(result.pagesPerSecond > 0 && result.cpuMsPerPage > 0 && result.rssBytesMax > 1e7, stdout)
})

test('bench rejects an invalid number of pages', async () => {
  const { code, stderr } = await sluice(['bench', '--pages', 'many'])
  assert.equal(code, 2)
  assert.match(stderr, /--pages takes a whole number/)
})
