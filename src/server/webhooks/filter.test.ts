/** Which events a subscription receives. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventData, EventFilter } from './contract.ts'
import { isOfType, isWanted } from './filter.ts'

const job = {
  title: 'Senior Rust Engineer',
  company: 'Acme GmbH',
  source: 'greenhouse',
  locations: [{ raw: 'Berlin, Germany', city: 'Berlin', region: null, country_iso2: 'DE', lat: null, lon: null }],
  workplace: 'hybrid',
  employment_type: 'full_time',
  salary: { min: 70_000, max: 90_000, currency: 'EUR', interval: 'year', source: 'structured', raw: null },
  salary_annual_min: 70_000,
  salary_annual_max: 90_000,
  description_text: 'We build pumps. No agencies.',
}

const fits = (filter: EventFilter, data: EventData = { scraper: 'jobs-greenhouse', job }) =>
  isWanted({ type: 'job.created', data }, { events: ['job.*'], filter })

test('a pattern is a type, a group, or everything', () => {
  assert.ok(isOfType('run.failed', 'run.failed') && isOfType('run.failed', 'run.*') && isOfType('run.failed', '*'))
  for (const pattern of ['run', 'ru.*', 'run.finished', 'job.*', '*.failed', ''])
    assert.ok(!isOfType('run.failed', pattern), pattern)
})

test('each part of a filter accepts what it names, and nothing else', () => {
  const cases: [EventFilter, EventFilter][] = [
    [{ keywords: ['python', 'rust'] }, { keywords: ['python'] }],
    [{ companies: ['acme gmbh'] }, { companies: ['acme'] }],
    [{ locations: ['berlin'] }, { locations: ['Paris'] }],
    [{ locations: ['de'] }, { locations: ['er'] }],
    [{ sources: ['greenhouse', 'lever'] }, { sources: ['lever'] }],
    [{ employment_type: ['full_time'] }, { employment_type: ['contract'] }],
    [{ workplace: ['remote', 'hybrid'] }, { workplace: ['remote'] }],
    [{ salary_min: 80_000 }, { salary_min: 100_000 }],
    [
      { salary_min: 80_000, salary_currency: 'eur' },
      { salary_min: 80_000, salary_currency: 'USD' },
    ],
    [{ exclude: ['clearance'] }, { exclude: ['clearance', 'PUMPS'] }],
    [{ scrapers: ['jobs-greenhouse'] }, { scrapers: ['books'] }],
  ]
  for (const [yes, no] of cases) {
    assert.ok(fits(yes), JSON.stringify(yes))
    assert.ok(!fits(no), JSON.stringify(no))
  }
  assert.ok(fits(Object.assign({}, ...cases.map(([yes]) => yes))))
})

test('conditions on jobs do not apply to events without a job', () => {
  const filter = { keywords: ['rust'], salary_min: 1, scrapers: ['books'] }
  const of = (data: EventData) => isWanted({ type: 'run.failed', data }, { events: ['*'], filter })
  assert.ok(of({ scraper: 'books' }) && of({}))
  assert.ok(!of({ scraper: 'quotes' }))
})

test('unusual items match or do not, and nothing is thrown', () => {
  const deep: Record<string, never> = JSON.parse(`${'{"a":'.repeat(50)}"rust"${'}'.repeat(50)}`)
  const odd = [{}, { salary: 'much', locations: 'Berlin' }, { locations: [null, 3, ['x']], company: 7 }, deep]
  const filter = { keywords: ['rust'], locations: ['Berlin'], companies: ['x'], salary_min: 1, salary_currency: 'EUR' }
  for (const item of odd) assert.equal(fits(filter, { item } as EventData), false)
  assert.ok(fits({ locations: ['Berlin'] }, { item: { location: 'Berlin-Mitte' } }))
})
