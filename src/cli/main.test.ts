import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startSluice } from '../../test/sluice.ts'

test('whoever stops reading our output gets no stack', async () => {
  const { child, result } = startSluice(['help'])
  child.stdout!.destroy() // as `| head` does, before the first line is there
  const { code, stderr } = await result
  assert.equal(code, 0, stderr)
  assert.equal(stderr, '')
})
