import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countByRun, inOrderOfNeed, toRelieve } from './worker-shares.ts'

const at = (runId: string, startedAtMs: number, isLeaving = false) => ({ runId, startedAtMs, isLeaving })

test('a run with two workers gives one to a run that has none, at once and only one', () => {
  const workers = [at('long', 0), at('long', 1), at('long', 2)]
  assert.deepEqual(toRelieve(workers, 1, 10), [workers[0]])
  assert.deepEqual(toRelieve(workers, 2, 10), [workers[0], workers[1]])
  assert.deepEqual(toRelieve([at('long', 0, true), at('long', 1)], 1, 10), [], 'one is on its way out already')
})

test('with more runs than workers each gets its turn, and nobody is sent away before it is over', () => {
  const workers = [at('a', 1000), at('b', 0)]
  assert.deepEqual(toRelieve(workers, 1, 5000, 10_000), [])
  assert.deepEqual(toRelieve(workers, 1, 10_500, 10_000), [workers[1]])
  assert.deepEqual(toRelieve(workers, 0, 99_000, 10_000), [], 'nobody waits')
})

test('the place goes to who has fewest workers and was served longest ago', () => {
  const counts = countByRun([at('a', 0), at('b', 0, true)])
  const served = new Map([
    ['a', 1],
    ['b', 3],
    ['c', 2],
  ])
  assert.deepEqual(inOrderOfNeed(['a', 'b', 'c', 'new'], counts, served), ['new', 'c', 'b', 'a'])
})
