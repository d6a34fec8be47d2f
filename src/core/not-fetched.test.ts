import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countNotFetched, notFetchedCounters, notFetchedOf, notFetchedWarnings, skippedTasks } from './not-fetched.ts'

test('reads back from the counters of a run what was counted, in table order', () => {
  const counts = {}
  countNotFetched(counts, 'links', 2)
  countNotFetched(counts, 'robots')
  countNotFetched(counts, 'robots', 2)
  countNotFetched(counts, 'depth', 0)
  const counters = notFetchedCounters(counts)!
  assert.deepEqual(counters, { 'notFetched.robots': 3, 'notFetched.links': 2 })
  assert.deepEqual(Object.entries(notFetchedOf({ ...counters, 'pages.ok': 7, 'notFetched.unknown': 1 })), [
    ['robots', 3],
    ['links', 2],
  ])
  assert.equal(notFetchedCounters({}), undefined)
  assert.deepEqual(notFetchedOf(undefined), {})
})

test('distinguishes links from tasks, and warnings from intended limits', () => {
  assert.equal(skippedTasks({ 'notFetched.robots': 3, 'notFetched.depth': 9 }), 3)
  assert.deepEqual(notFetchedWarnings({ robots: 3, depth: 1200, links: 1, facets: 1200 }), [
    'not followed: 1 link over linksMax, the limit for one page',
    'not followed: 1,200 links with too many combinations of filter parameters',
  ])
})
