/** One job posted on many boards. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Posting, RawPosting, Source } from '../read/posting.ts'
import { toPosting } from '../read/to-posting.ts'
import { compare, isSameJob, type PlainJob } from './cluster.ts'
import { clusterOf } from './cluster-of.ts'

interface Pair {
  name?: string
  duplicate: boolean
  a: PlainJob
  b: PlainJob
}

const TEXT =
  'We look for an engineer to build our payments platform. You will design interfaces in Go. You own reliability.'
const NOW = new Date('2026-03-10T12:00:00Z')

let ids = 0
function posting(more: Partial<RawPosting> = {}, source: Source = 'greenhouse'): Posting {
  const id = String(++ids)
  const raw = {
    source_job_id: id,
    board_token: 'acme',
    title: 'Engineer',
    company: 'Acme',
    locations: ['Boston, MA'],
    job_url: `https://x.test/${source}`,
  }
  return toPosting(source, { ...raw, description_text: TEXT, ...more }, { now: NOW })
}

for (const name of ['dedup-pairs.json', 'dedup-more-pairs.json']) {
  test(`finds every pair of ${name}, in both directions, and merges no two jobs`, () => {
    const pairs: Pair[] = JSON.parse(readFileSync(new URL(`../../../test/data/jobs/${name}`, import.meta.url), 'utf8'))
    assert.ok(pairs.length >= 8)
    const wrong = pairs.filter(({ a, b, duplicate }) => isSameJob(a, b) !== duplicate || isSameJob(b, a) !== duplicate)
    assert.deepEqual(wrong, [])
  })
}

test('gives the reason', () => {
  const of = (a: Partial<RawPosting>, b: Partial<RawPosting>) => compare(posting(a), posting(b))
  assert.deepEqual(of({}, { company: 'Acme Labs' }).veto, 'company')
  assert.deepEqual(of({}, { title: 'Senior Engineer' }).veto, 'seniority')
  assert.deepEqual(of({ title: 'Engineer I' }, { title: 'Engineer II' }).veto, 'level')
  assert.deepEqual(of({ title: 'iOS Engineer' }, { title: 'Android Engineer' }).veto, 'speciality')
  assert.deepEqual(of({}, { locations: ['Denver, CO'] }).veto, 'place')
  assert.deepEqual(of({ employment_type: 'intern' }, { employment_type: 'full-time' }).veto, 'employment')
  assert.equal(of({}, {}).reason, 'job_hash')
})

test('a requisition or apply URL proves identity, unless the titles disagree', () => {
  const twin = { requisition_id: 'R-17', locations: [], description_text: null }
  assert.equal(compare(posting(twin), posting({ ...twin, locations: ['Boston, MA'] })).reason, 'requisition')
  assert.equal(compare(posting(twin), posting({ ...twin, title: 'Senior Engineer' })).verdict, 'different')
  const url = { apply_url: 'https://apply.test/jobs/12345', locations: [], employment_type: 'full-time' }
  assert.equal(compare(posting(url), posting({ ...url, employment_type: null })).reason, 'apply_url')
  const front = { apply_url: 'https://apply.test/careers', locations: [], description_text: null }
  assert.equal(compare(posting(front), posting({ ...front, employment_type: 'full-time' })).verdict, 'possible')
})

test('uncertain pairs are possible, not the same', () => {
  const verdict = (a: Partial<RawPosting>, b: Partial<RawPosting>) => compare(posting(a), posting(b)).verdict
  assert.equal(verdict({ locations: ['Remote'] }, {}), 'possible')
  assert.equal(verdict({ locations: [] }, {}), 'possible')
  assert.equal(verdict({ company: null }, {}), 'possible')
  assert.equal(verdict({ title: 'Engineer, Payments' }, { title: 'Engineer' }), 'possible')
  assert.equal(
    verdict({ locations: ['Boston'], description_text: 'other words that have nothing at all to do with it' }, {}),
    'possible',
  )
  const [early, late] = [{ locations: ['Boston'], date_posted: '2026-01-01' }, { date_posted: '2026-03-09' }]
  assert.equal(verdict(early, late), 'possible')
  assert.equal(verdict({ ...early, date_posted: '2026-03-01' }, late), 'same')
})

test('groups boards, prefers the employer, and links possible matches', () => {
  const own = posting({ apply_url: 'https://acme.test/apply/1' })
  const board = posting({ locations: ['Boston, Massachusetts, USA'] }, 'indeed')
  const markup = posting({ locations: ['Boston'] }, 'jsonld')
  const other = posting({ title: 'Senior Engineer' })
  const remote = posting({ locations: ['Remote'] }, 'linkedin')
  const clusters = clusterOf([board, markup, own, other, remote])
  assert.deepEqual(
    clusters.map(({ members }) => members.length),
    [3, 1, 1],
  )
  assert.equal(clusters[0]?.preferred, own)
  assert.equal(clusters[0]?.apply_url, 'https://acme.test/apply/1')
  assert.deepEqual([clusters[0]?.possible, clusters[2]?.possible], [[2], [0]])
})

test('a posting for two cities does not merge two jobs', () => {
  const [boston, denver] = [posting(), posting({ locations: ['Denver, CO'] })]
  const both = posting({ locations: ['Boston, MA', 'Denver, CO'] })
  const clusters = clusterOf([boston, denver, both])
  assert.ok(!clusters.some(({ members }) => members.includes(boston) && members.includes(denver)))
})

test('does not compare every posting with every other', () => {
  const titles = Array.from({ length: 1500 }, (_, i) =>
    posting({ title: `Engineer of ${i.toString(36)}x`, job_url: '' }),
  )
  const twins = Array.from({ length: 1500 }, () =>
    posting({ locations: ['Boston'], description_text: null, job_url: '' }),
  )
  assert.equal(clusterOf(titles).length, 1500)
  assert.ok(clusterOf(twins).length > 0)
})
