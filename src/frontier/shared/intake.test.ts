/** How a trace is stored around a task's data in engines that keep it as text. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Json } from '../../core/task.ts'
import { packData, unpackData } from './intake.ts'

test('a trace is stored with any data, and data that looks like one is returned unchanged', () => {
  const all: Json[] = [null, 7, 'text', [1], { a: { b: 1 } }, { $trace: 'mine', data: 2 }]
  for (const data of all) {
    assert.deepEqual(unpackData(packData({ data })), { data })
    assert.deepEqual(unpackData(packData({ data, trace: '00-a-b-01' })), { data, trace: '00-a-b-01' })
  }
  assert.equal(packData({ data: { a: 1 } }), '{"a":1}', 'without a trace nothing is added')
})
