/** A loopback Workable: the widget with the whole board, and the paged API with a token for each further page. */
import { type BoardAnswer, type BoardServer, type MockOptions, notFound, startBoardServer } from './ats-server.ts'

const PAGE_SIZE = 10

export const workableCode = (n: number) => `AB${String(n).padStart(8, '0')}`

const dayOf = (n: number) => new Date(Date.UTC(2026, 10, 10) - n * 86_400_000).toISOString().slice(0, 10)
const cityOf = (n: number) =>
  n % 3 === 0
    ? { city: 'Athens', region: 'Attica', country: 'Greece', countryCode: 'GR' }
    : { city: 'Boston', region: 'Massachusetts', country: 'United States', countryCode: 'US' }
const titleOf = (n: number) => `${['Backend', 'Frontend'][n % 2]} Engineer ${n}`
const wordsOf = (n: number) => `<p>Write ${n % 5 === 0 ? 'Rust' : 'Go'}.</p>`

/** The n-th posting as in the widget; higher numbers are older. */
function widgetJob(n: number) {
  const { city, region, country, countryCode } = cityOf(n)
  return {
    title: titleOf(n),
    shortcode: workableCode(n),
    code: n % 2 === 0 ? `INT-${n}` : '',
    employment_type: n % 4 === 0 ? 'Part-time' : 'Full-time',
    telecommuting: n % 4 === 1,
    department: 'Engineering',
    url: `https://apply.workable.com/j/${workableCode(n)}`,
    application_url: `https://apply.workable.com/j/${workableCode(n)}/apply`,
    published_on: dayOf(n),
    created_at: '2025-01-01',
    country,
    city,
    state: region,
    education: '',
    experience: 'Mid-Senior level',
    function: 'Engineering',
    industry: 'Software',
    locations: [{ country, countryCode, city, region, hidden: false }],
    description: `${wordsOf(n)}<ul><li>Patience</li></ul>`,
  }
}

function listed(n: number) {
  return {
    id: 1_000_000 + n,
    shortcode: workableCode(n),
    title: titleOf(n),
    remote: n % 4 === 1,
    workplace: ['on_site', 'remote', 'hybrid', 'on_site'][n % 4],
    location: cityOf(n),
    locations: [{ ...cityOf(n), hidden: false }],
    code: '',
    published: `${dayOf(n)}T09:00:00.000Z`,
    type: n % 4 === 0 ? 'part' : 'full',
    language: 'en',
    department: ['Engineering', 'Platform'],
  }
}

/** Its only board is `acme-robotics`. */
export async function startWorkableMock(options: MockOptions): Promise<BoardServer> {
  const { jobs } = options
  const upTo = (count: number, of: (n: number) => object, from = 0) =>
    Array.from({ length: count }, (_, i) => of(from + i))
  return await startBoardServer(({ method, path, query, body }): BoardAnswer => {
    if (path === '/api/v1/widget/accounts/acme-robotics') {
      const isWhole = query.get('details') === 'true'
      const list = upTo(jobs, (n) => (isWhole ? widgetJob(n) : { ...widgetJob(n), description: undefined }))
      return { body: { name: 'Acme Robotics, Inc.', description: null, jobs: list } }
    }
    if (method === 'POST' && path === '/api/v3/accounts/acme-robotics/jobs') {
      const from = Number((body as { token?: string }).token?.replace('after-', '') ?? 0)
      const end = Math.min(jobs, from + PAGE_SIZE)
      return {
        body: { total: jobs, results: upTo(end - from, listed, from), nextPage: end < jobs ? `after-${end}` : null },
      }
    }
    const n = Number(/^\/api\/v2\/accounts\/acme-robotics\/jobs\/AB(\d+)$/.exec(path)?.[1])
    if (!(n < jobs)) return notFound
    const texts = {
      description: wordsOf(n),
      requirements: '<ul><li>Patience</li></ul>',
      benefits: '<p>A desk</p>',
    }
    return { body: { ...listed(n), ...texts } }
  }, options)
}
