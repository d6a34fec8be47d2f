/** Data quality of a run's postings. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHistogram } from '../../observe/histogram.ts'
import type { RawPosting } from '../read/posting.ts'
import { toPosting } from '../read/to-posting.ts'
import { driftAlarms } from './drift.ts'
import { createQuality, problemsOf, QUALITY_FIELDS } from './quality.ts'

const NOW = new Date('2026-03-10T12:00:00Z')
const posting = (id: number, more: Partial<RawPosting> = {}) =>
  toPosting(
    'lever',
    { source_job_id: id, board_token: 'a', title: 'Engineer', company: 'Acme', job_url: 'https://x.test/1', ...more },
    { now: NOW },
  )

test('counts completeness, score, repeats and yield as postings stream by', () => {
  const quality = createQuality('lever', { quantiles: createHistogram })
  quality.add(posting(1), { now: NOW })
  quality.add(posting(1), { now: NOW, clusterSize: 2, storeMs: 100 })
  const full = {
    locations: ['Boston, MA'],
    workplace: 'onsite',
    employment_type: 'Full-time',
    salary: '$100,000 a year',
    date_posted: '2026-03-10T10:00:00Z',
    description_text: 'x',
    apply_url: 'https://x.test/2',
  }
  quality.add(posting(2, full), { now: NOW, isRepost: true, storeMs: 100 })
  quality.add(posting(3, { company: null }), { now: NOW })
  quality.addRequests({ requests: 8, emptyPages: 2, blocked: 1, isTruncated: false })
  quality.addRequests({ requests: 0, emptyPages: 0, blocked: 0, isTruncated: true })
  const report = quality.report()
  assert.equal(report.items, 4)
  assert.deepEqual(
    [report.completeness.title, report.completeness.company, report.completeness.salary],
    [1, 0.75, 0.25],
  )
  assert.equal(report.score, (6 + 3 * 0.75 + 10 * 0.25) / 19)
  assert.deepEqual(report.duplicates, { exact: 1, crossBoard: 1, reposts: 1 })
  assert.deepEqual(report.yield, { itemsPerRequest: 0.5, emptyPageRate: 0.25, blockedRate: 0.125, isTruncated: true })
  assert.ok(Math.abs(report.freshness.lagHoursP50! - 2) < 0.1 && Math.abs(report.freshness.storeMsP95! - 100) < 5)
})

test('an empty run has no numbers rather than wrong ones', () => {
  const report = createQuality('lever', { quantiles: createHistogram }).report()
  assert.deepEqual([report.items, report.score, report.freshness.lagHoursP50], [0, 0, null])
})

test('reports implausible values', () => {
  assert.deepEqual(problemsOf(posting(1, { locations: ['Boston, MA'] }), NOW), [])
  const of = (more: Partial<RawPosting>) => problemsOf(posting(1, more), NOW)
  assert.deepEqual(of({ title: 'x'.repeat(201) }), ['title'])
  assert.deepEqual(of({ date_posted: '2026-03-12' }), ['date_posted'])
  assert.deepEqual(of({ date_posted: '2023-01-01' }), ['date_posted'])
  assert.deepEqual(of({ job_url: 'http://x.test/' }), ['job_url'])
  assert.deepEqual(of({ job_url: '/jobs/1' }), ['job_url'])
  assert.deepEqual(of({ locations: ['Atlantis'] }), ['country'])
  const salary = { min: 2, max: 1, currency: null, interval: null, source: 'structured', raw: null } as const
  assert.deepEqual(problemsOf({ ...posting(1), salary }, NOW), ['salary'])
})

const measured = (share: number, items = 100) => ({
  items,
  completeness: Object.fromEntries(QUALITY_FIELDS.map((field) => [field, field === 'salary' ? share : 1])) as Record<
    (typeof QUALITY_FIELDS)[number],
    number
  >,
})

test('raises an alarm when a field falls 20 points or 3 sigma below the previous week', () => {
  const steady = [0.8, 0.81, 0.79, 0.8, 0.8, 0.82, 0.8].map((share) => measured(share))
  const restless = [0.5, 0.9, 0.6, 0.8, 0.7, 0.75, 0.65].map((share) => measured(share))
  assert.deepEqual(driftAlarms(measured(0.78), steady), [])
  assert.deepEqual(
    driftAlarms(measured(0.7), steady).map(({ field, reason }) => [field, reason]),
    [['salary', 'sigma']],
  )
  assert.deepEqual(
    driftAlarms(measured(0.5), steady).map(({ reason }) => reason),
    ['points'],
  )
  assert.deepEqual(driftAlarms(measured(0.55), restless), [])
  assert.deepEqual(driftAlarms(measured(0.95), steady), [])
})

test('too few items or days raise no alarm', () => {
  const steady = Array.from({ length: 7 }, () => measured(0.8))
  assert.deepEqual(driftAlarms(measured(0, 5), steady), [])
  assert.deepEqual(driftAlarms(measured(0), steady.slice(0, 2)), [])
  assert.deepEqual(
    driftAlarms(
      measured(0),
      Array.from({ length: 7 }, () => measured(0.8, 3)),
    ),
    [],
  )
})
