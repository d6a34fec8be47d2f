/** A loopback Lever: pages by `skip` and `limit`, HTML for clients that do not ask for JSON, the text in several parts. */
import { type BoardAnswer, type BoardServer, type MockOptions, notFound, startBoardServer } from './ats-server.ts'

export interface LeverOptions extends MockOptions {
  /** Every page is the first one. */
  ignoresSkip?: boolean
}

const WORKPLACES = ['on-site', 'remote', 'hybrid', 'unspecified']

export const leverId = (n: number) => `0f0e0d0c-0000-4000-8000-${String(n).padStart(12, '0')}`

/** The n-th posting; higher numbers are older. */
function leverJob(n: number) {
  return {
    id: leverId(n),
    text: `${['Backend', 'Frontend'][n % 2]} Engineer ${n}`,
    categories: {
      location: 'Berlin',
      allLocations: n % 3 === 0 ? ['Berlin', 'Munich'] : ['Berlin'],
      commitment: n % 4 === 0 ? 'Part-time' : 'Full-time',
      team: 'Platform',
      department: 'Engineering',
    },
    country: n % 3 === 0 ? null : 'DE',
    createdAt: Date.UTC(2026, 10, 10, 9) - n * 86_400_000,
    description: '<div>We build engines.</div>',
    descriptionPlain: 'We build engines.',
    lists: [
      { text: 'What you do', content: `<li>Write ${n % 5 === 0 ? 'Rust' : 'Go'}</li><li>Review</li>` },
      { text: 'What you get', content: '<li>A desk</li>' },
    ],
    additional: '<div>Equal opportunity.</div>',
    hostedUrl: `https://jobs.lever.co/acme/${leverId(n)}`,
    applyUrl: `https://jobs.lever.co/acme/${leverId(n)}/apply`,
    workplaceType: WORKPLACES[n % WORKPLACES.length],
    ...(n % 2 === 0 ? { salaryRange: { currency: 'EUR', interval: 'per-year-salary', min: 70_000, max: 90_000 } } : {}),
  }
}

/** Its only board is `acme-robotics`. */
export async function startLeverMock(options: LeverOptions): Promise<BoardServer> {
  const { jobs, ignoresSkip = false } = options
  return await startBoardServer(({ path, query, headers }): BoardAnswer => {
    if (path !== '/v0/postings/acme-robotics') return notFound
    if (!headers.accept?.includes('application/json')) return { body: '<html><body>Jobs at Acme</body></html>' }
    const skip = ignoresSkip ? 0 : Number(query.get('skip') ?? 0)
    const limit = Math.min(100, Number(query.get('limit') ?? 100))
    const size = Math.max(0, Math.min(limit, jobs - skip))
    return { body: Array.from({ length: size }, (_, i) => leverJob(skip + i)) }
  }, options)
}
