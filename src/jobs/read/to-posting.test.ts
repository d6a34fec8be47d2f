/** From what an adapter read to the common record. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { postingSchema, type RawPosting } from './posting.ts'
import { toPosting } from './to-posting.ts'

const NOW = new Date('2026-03-10T12:00:00Z')
const RAW: RawPosting = {
  source_job_id: 17,
  board_token: 'acme',
  title: 'Engineer',
  company: 'Acme',
  job_url: 'https://acme.test/jobs/17',
}
const make = (more: Partial<RawPosting> = {}) => toPosting('greenhouse', { ...RAW, ...more }, { now: NOW })

test('a minimal posting passes the schema, with null for everything unknown', () => {
  const posting = make()
  assert.deepEqual(postingSchema.parse(posting), posting)
  assert.deepEqual(
    [posting.workplace, posting.is_remote, posting.employment_type, posting.salary, posting.valid_through],
    [null, null, null, null, null],
  )
  assert.equal(posting.source_job_id, '17')
})

test('a full posting is normalised', () => {
  const posting = make({
    title: ' Sr.  Engineer &amp; Lead ',
    locations: ['Berlin, DE | Munich, Germany'],
    workplace: 'Hybrid',
    employment_type: ['FULL_TIME'],
    salary: { min: 60_000, max: 70_000, currency: 'eur', interval: '1 YEAR' },
    date_posted: '2026-03-01 09:30:00 UTC',
    valid_through: '2026-04-01',
    description_html: '&lt;p&gt;Hello&lt;/p&gt;',
    apply_url: 'https://apply.test/1',
    remote_countries: ['Deutschland', 'US', 'Nowhere'],
  })
  assert.deepEqual(postingSchema.parse(posting), posting)
  assert.equal(posting.title, 'Sr. Engineer & Lead')
  assert.deepEqual(
    posting.locations.map(({ city }) => city),
    ['Berlin', 'Munich'],
  )
  assert.deepEqual([posting.workplace, posting.is_remote, posting.employment_type], ['hybrid', false, 'full_time'])
  assert.deepEqual([posting.salary_annual_min, posting.salary_annual_max], [60_000, 70_000])
  assert.deepEqual(
    [posting.date_posted, posting.date_posted_precision, posting.valid_through],
    ['2026-03-01T09:30:00.000Z', 'instant', '2026-04-01'],
  )
  assert.deepEqual([posting.description_html, posting.description_text], ['<p>Hello</p>', 'Hello'])
  assert.deepEqual(posting.remote_countries, ['DE', 'US'])
})

test('words in the description do not make a job remote', () => {
  const posting = make({ description_text: 'We are remote first. Work from home!', locations: ['Boston, MA'] })
  assert.deepEqual([posting.workplace, posting.is_remote, posting.raw], [null, null, { mentions_remote: true }])
})

test('the apply URL is kept only if it differs', () => {
  assert.equal(make({ apply_url: 'https://acme.test/jobs/17?utm_source=x#apply' }).apply_url, null)
  assert.equal(make({ apply_url: 'https://acme.test/jobs/17/apply' }).apply_url, 'https://acme.test/jobs/17/apply')
  assert.equal(make({ apply_url: 'javascript:void(0)' }).apply_url, null)
})

test('a confidential employer has no name', () => {
  assert.equal(make({ company: 'Confidential' }).company, null)
  assert.equal(make({ company: '' }).company, null)
})

test('other data from the board is kept, up to 5 kB', () => {
  const circle: Record<string, unknown> = {}
  circle['self'] = circle
  const { raw } = make({ raw: { small: 1, big: 'x'.repeat(6000), circle, number: 10n, last: [2] } })
  assert.deepEqual(raw, { small: 1, last: [2] })
})

test('an unknown age is a bound, and marked as one', () => {
  const posting = make({ date_posted: 'Posted 30+ Days Ago' })
  assert.deepEqual(
    [posting.date_posted, posting.date_posted_precision, posting.raw['posted_before']],
    ['2026-02-08', 'relative', '2026-02-08'],
  )
})

test('the schema rejects a posting without required fields', () => {
  for (const more of [{ title: ' ' }, { job_url: '' }, { source_job_id: '' }, { source_job_id: 'a\u0000b' }]) {
    assert.equal(postingSchema.safeParse(make(more)).success, false, JSON.stringify(more))
  }
})

test('odd data is dropped, never thrown', () => {
  const names = Object.keys({
    ...RAW,
    locations: 0,
    workplace: 0,
    is_remote: 0,
    remote_countries: 0,
    employment_type: 0,
    salary: 0,
    date_posted: 0,
    valid_through: 0,
    description_html: 0,
    description_text: 0,
    apply_url: 0,
    raw: 0,
    requisition_id: 0,
    department: 0,
  })
  const odd = fc.dictionary(
    fc.constantFrom(...names),
    fc.anything({ withDate: true, withBigInt: true, withNullPrototype: true }),
  )
  fc.assert(
    fc.property(odd, (more) => {
      const posting = make(more as Partial<RawPosting>)
      assert.match(posting.job_hash, /^[0-9a-f]{64}$/)
    }),
    { numRuns: 500 },
  )
})
