/** A loopback Breezy: the whole board in one array, descriptions only on request, and a redirect for a closed board. */
import { type BoardAnswer, type BoardServer, type MockOptions, notFound, startBoardServer } from './ats-server.ts'

export interface BreezyOptions extends MockOptions {
  /** Where the closed board redirects to. */
  closedTo?: string
}

const DAY_MS = 86_400_000
const CITIES = [
  {
    city: 'Austin',
    state: { id: 'TX', name: 'Texas' },
    country: { id: 'US', name: 'United States' },
    is_remote: false,
    name: 'Austin, TX',
  },
  { city: 'Berlin', state: null, country: { id: 'DE', name: 'Germany' }, is_remote: true, name: 'Berlin, DE' },
]

/** The n-th posting; higher numbers are older. */
export function breezyJob(n: number) {
  return {
    id: `b${1000 + n}`,
    friendly_id: `b${1000 + n}-driver`,
    name: `${n % 2 === 0 ? 'Driver' : 'Dispatcher'} ${n}`,
    url: `https://acme.breezy.hr/p/b${1000 + n}-driver`,
    published_date: new Date(Date.UTC(2026, 10, 10, 9) - n * DAY_MS).toISOString(),
    type: n % 3 === 0 ? { id: 'fullTime', name: 'Full-Time' } : { id: 'contract', name: 'Contract' },
    location: CITIES[n % 2],
    locations: n % 5 === 0 ? CITIES : [CITIES[n % 2]],
    department: 'Logistics',
    salary: n === 0 ? '$50,000 - $60,000 / yr' : '',
    company: { name: 'Acme Freight', logo_url: 'https://cdn.breezy.test/acme.png', friendly_id: 'acme' },
  }
}

/** Its only board is at the root. */
export async function startBreezyMock(options: BreezyOptions): Promise<BoardServer> {
  const board = Array.from({ length: options.jobs }, (_, n) => breezyJob(n))
  return await startBoardServer(({ path, query }): BoardAnswer => {
    if (path !== '/json') return notFound
    if (options.closedTo !== undefined) return { status: 302, headers: { location: options.closedTo }, body: '' }
    const isVerbose = query.get('verbose') === 'true'
    return {
      body: isVerbose ? board.map((job) => ({ ...job, description: `<p>Drive safely, ${job.id}.</p>` })) : board,
    }
  }, options)
}
