/** The Breezy board against its loopback mock. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { start } from '../../../src/index.ts'
import { idsOf, runBoard } from '../../../test/site/boards/ats-run.ts'
import { notFound } from '../../../test/site/boards/ats-server.ts'
import { boardConformance } from '../../../test/site/boards/ats-suite.ts'
import { breezyJob, startBreezyMock } from '../../../test/site/boards/breezy.ts'
import { temporaryFolder } from '../../../test/sluice.ts'
import breezy from './breezy.ts'

boardConformance({
  scraper: breezy,
  start: startBreezyMock,
  args: { board: 'acme' },
  idOf: (n) => `b${1000 + n}`,
  jobs: 60,
  startNobody: () => startBreezyMock({ jobs: 0, trouble: () => notFound }),
})

test('reads everything in a posting', async () => {
  await using site = await startBreezyMock({ jobs: 1 })
  const { postings } = await runBoard(breezy, site, { board: 'acme' })
  const { job_hash, content_hash, raw, salary, ...posting } = postings[0]!
  assert.deepEqual([salary?.min, salary?.max, salary?.currency, salary?.interval], [50_000, 60_000, 'USD', 'year'])
  assert.deepEqual(posting, {
    source: 'breezy',
    source_job_id: 'b1000',
    board_token: 'acme',
    requisition_id: null,
    title: 'Driver 0',
    company: 'Acme Freight',
    company_url: null,
    company_logo: 'https://cdn.breezy.test/acme.png',
    locations: [
      { raw: 'Austin, TX', city: 'Austin', region: 'TX', country_iso2: 'US', lat: null, lon: null },
      { raw: 'Berlin, DE', city: 'Berlin', region: null, country_iso2: 'DE', lat: null, lon: null },
    ],
    workplace: 'remote',
    is_remote: true,
    remote_countries: [],
    employment_type: 'full_time',
    employment_type_raw: 'Full-Time',
    salary_annual_min: 50_000,
    salary_annual_max: 60_000,
    date_posted: '2026-11-10T09:00:00.000Z',
    date_posted_precision: 'instant',
    valid_through: null,
    description_html: '<p>Drive safely, b1000.</p>',
    description_text: 'Drive safely, b1000.',
    job_url: breezyJob(0).url,
    apply_url: null,
    department: 'Logistics',
    team: null,
    seniority: null,
    industry: null,
    function: null,
    language: null,
  })
})

test('treats a closed board, which redirects to Breezy’s own pages, as missing', async () => {
  await using marketing = await startBreezyMock({ jobs: 3 })
  await using site = await startBreezyMock({ jobs: 3, closedTo: `${marketing.url}json` })
  using folder = temporaryFolder()
  const run = await start(breezy, {
    args: { board: 'acme', site: site.url },
    out: folder.path,
    allowAddress: [new URL(site.url).host, new URL(marketing.url).host],
  })
  const record = await run.result
  assert.equal(record.exitCode, 1)
  assert.match(readFileSync(join(run.folder, 'errors.jsonl'), 'utf8'), /no board .{0,2}acme/)
  assert.equal(record.items.new, 0)
})

test('returns only what was asked for', async () => {
  await using site = await startBreezyMock({ jobs: 30 })
  const count = async (args: object) => (await runBoard(breezy, site, { board: 'acme', ...args })).postings.length
  assert.equal(await count({ search: 'dispatcher' }), 15)
  assert.equal(await count({ search: 'b1007' }), 1)
  assert.equal(await count({ location: 'Berlin' }), 18)
  assert.equal(await count({ remote: false }), 12)
  assert.equal(await count({ type: 'full_time' }), 10)
  const since = (Date.now() - Date.parse('2026-11-10T09:00:00Z')) / 86_400_000 + 1.5
  assert.deepEqual(idsOf((await runBoard(breezy, site, { board: 'acme', since })).postings), ['b1000', 'b1001'])
})
