/** A loopback Greenhouse: the whole board in one response, pay only in a posting's own response, HTML with escaped tags. */
import { type BoardAnswer, type BoardServer, type MockOptions, notFound, startBoardServer } from './ats-server.ts'

export interface GreenhouseOptions extends MockOptions {
  /** The list omits all postings beyond this number, but still states the total. */
  sends?: number
  /** Fields that its postings lack. */
  lacks?: readonly string[]
}

const CITIES = ['Berlin, Germany', 'London, United Kingdom', 'Remote - US', 'New York, NY']
const DAY_MS = 86_400_000

/** The n-th posting; higher numbers are older. */
export function greenhouseJob(n: number) {
  const at = new Date(Date.UTC(2026, 10, 10, 9) - n * DAY_MS).toISOString().replace('.000Z', '-00:00')
  return {
    id: 4_000_000 + n,
    internal_job_id: n % 10 === 9 ? null : 900_000 + n,
    title: `${['Backend', 'Frontend', 'Data', 'Platform'][n % 4]} Engineer ${n}`,
    updated_at: '2026-11-12T08:00:00-00:00',
    first_published: at,
    requisition_id: n % 3 === 0 ? `REQ-${n}` : null,
    location: { name: CITIES[n % CITIES.length] },
    absolute_url: `https://boards.greenhouse.io/acme/jobs/${4_000_000 + n}`,
    language: 'en',
    company_name: 'Acme & Sons',
    metadata: [
      { id: 1, name: 'Employment Type', value_type: 'single_select', value: n % 2 === 0 ? 'Full-time' : 'Contract' },
      { id: 2, name: 'Sponsored', value_type: 'yes_no', value: null },
    ],
    content: `&lt;div class=&quot;intro&quot;&gt;&lt;p&gt;Build &amp;amp; run ${n % 5 === 0 ? 'Rust' : 'Go'} services.&lt;/p&gt;&lt;/div&gt;`,
    departments: [{ id: 7, name: 'Engineering', parent_id: null, child_ids: [] }],
    offices: [{ id: 8, name: 'HQ', location: 'Berlin, Germany', parent_id: null, child_ids: [] }],
  }
}

const PAY = [
  { min_cents: 12_000_000, max_cents: 15_000_000, currency_type: 'USD', title: 'Zone A', blurb: '<p>base</p>' },
  { min_cents: 10_000_000, max_cents: 13_000_000, currency_type: 'USD', title: 'Zone B', blurb: '' },
  { min_cents: 9_000_000, max_cents: 19_000_000, currency_type: 'EUR', title: 'Zone C', blurb: '' },
]

/** Its only board is `acme`. */
export async function startGreenhouseMock(options: GreenhouseOptions): Promise<BoardServer> {
  const { jobs, sends = jobs, lacks = [] } = options
  const withoutThem = (job: object) => Object.fromEntries(Object.entries(job).filter(([name]) => !lacks.includes(name)))
  const base = '/v1/boards/acme/jobs'
  return await startBoardServer(({ path, query }): BoardAnswer => {
    if (path === base) {
      const list = Array.from({ length: Math.min(sends, jobs) }, (_, n) => greenhouseJob(n))
      const bare = query.get('content') === 'true' ? list : list.map(({ content: _, ...job }) => job)
      return { body: { jobs: bare.map(withoutThem), meta: { total: jobs } } }
    }
    const n = Number(path.startsWith(`${base}/`) ? path.slice(base.length + 1) : Number.NaN) - 4_000_000
    if (!(n >= 0 && n < jobs)) return notFound
    return {
      body: { ...greenhouseJob(n), pay_input_ranges: query.get('pay_transparency') === 'true' ? PAY : undefined },
    }
  }, options)
}
