/** A loopback Pinpoint: the whole board in one response, including pay that must not be shown. */
import { type BoardAnswer, type BoardServer, type MockOptions, notFound, startBoardServer } from './ats-server.ts'

const DAY_MS = 86_400_000

/** The n-th posting; higher numbers are older. */
export function pinpointJob(n: number) {
  return {
    id: String(70_000 + n),
    title: `${['Support', 'Sales', 'Finance', 'People'][n % 4]} Partner ${n}`,
    url: `https://acme.pinpointhq.com/en/postings/${70_000 + n}`,
    description: `<div>Look after ${n % 5 === 0 ? 'gold' : 'silver'} customers.</div>`,
    key_responsibilities: '<ul><li>Listen</li></ul>',
    skills_knowledge_expertise: null,
    benefits: '',
    location: { id: '1', city: ['Bristol', 'Leeds'][n % 2], name: ['Bristol', 'Leeds'][n % 2], province: 'England' },
    employment_type: n % 2 === 0 ? 'full_time' : 'part_time',
    employment_type_text: n % 2 === 0 ? 'Full Time' : 'Part Time',
    workplace_type: ['hybrid', 'remote', 'onsite'][n % 3],
    compensation_minimum: 30_000 + n,
    compensation_maximum: '40000.0',
    compensation_currency: 'GBP',
    compensation_frequency: 'year',
    compensation_visible: n % 2 === 0,
    first_published_at: new Date(Date.UTC(2026, 10, 10, 9) - n * DAY_MS).toISOString(),
    deadline_at: n === 0 ? '2026-12-31T23:59:59Z' : null,
    reference: `P-${n}`,
    job: { id: '9', department: { id: '2', name: 'Customers' }, division: { id: '3', name: 'Care' } },
  }
}

/** Its only board is at the root; other paths have none. */
export async function startPinpointMock(options: MockOptions): Promise<BoardServer> {
  const board = Array.from({ length: options.jobs }, (_, n) => pinpointJob(n))
  return await startBoardServer(
    ({ path }): BoardAnswer => (path === '/postings.json' ? { body: { data: board } } : notFound),
    options,
  )
}
