import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countByRun, inOrderOfNeed, toRelieve } from './worker-shares.ts'

const at = (runId: string, startedAtMs: number, isLeaving = false) => ({ runId, startedAtMs, isLeaving })

test('moves one worker, at once and only one, from a run with two to a run with none', () => {
  const workers = [at('long', 0), at('long', 1), at('long', 2)]
  assert.deepEqual(toRelieve(workers, 1, 10), [workers[0]])
  assert.deepEqual(toRelieve(workers, 2, 10), [workers[0], workers[1]])
  assert.deepEqual(toRelieve([at('long', 0, true), at('long', 1)], 1, 10), [], 'one is on its way out already')
})

test('gives each run its turn when there are more runs than workers, and ends no turn early', () => {
  const workers = [at('a', 1000), at('b', 0)]
  assert.deepEqual(toRelieve(workers, 1, 5000, 10_000), [])
  assert.deepEqual(toRelieve(workers, 1, 10_500, 10_000), [workers[1]])
  assert.deepEqual(toRelieve(workers, 0, 99_000, 10_000), [], 'nobody waits')
})

test('gives the place to the run with the fewest workers that was served longest ago', () => {
  const counts = countByRun([at('a', 0), at('b', 0, true)])
  const served = new Map([
    ['a', 1],
    ['b', 3],
    ['c', 2],
  ])
  assert.deepEqual(inOrderOfNeed(['a', 'b', 'c', 'new'], counts, served), ['new', 'c', 'b', 'a'])
})
