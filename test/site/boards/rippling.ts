/** A loopback Rippling: a list row for each location of a posting, texts and pay only in a posting's own response. */
import { type BoardAnswer, type BoardServer, type MockOptions, notFound, startBoardServer } from './ats-server.ts'

const DAY_MS = 86_400_000
const PLACES = ['Remote (United States)', 'San Francisco, CA', 'Dublin, Ireland']

export const ripplingId = (n: number) => `00000000-aaaa-4bbb-8ccc-${String(n).padStart(12, '0')}`

/** The rows of the n-th posting: every fourth is open in two locations. */
function ripplingRows(n: number) {
  const places = n % 4 === 0 ? [PLACES[1], PLACES[2]] : [PLACES[n % 3]]
  return places.map((place) => ({
    uuid: ripplingId(n),
    name: `${n % 2 === 0 ? 'Nurse' : 'Doctor'} ${n}`,
    department: { id: 'd1', label: 'Care' },
    url: `https://ats.rippling.com/acme/jobs/${ripplingId(n)}`,
    workLocation: { id: place, label: place },
  }))
}

/** Its own response; higher numbers are older. */
function ripplingJob(n: number) {
  return {
    uuid: ripplingId(n),
    name: ripplingRows(n)[0]!.name,
    department: { name: 'Care', base_department: 'Care' },
    companyName: 'Acme Care, Inc.',
    description: { company: '<p>About Acme.</p>', role: `<p>Work by ${n % 5 === 0 ? 'night' : 'day'}.</p>` },
    employmentType: { label: ['SALARIED_FT', 'HOURLY_PT', 'CONTRACTOR'][n % 3], id: 'Human label' },
    createdOn: new Date(Date.UTC(2026, 10, 10, 9) - n * DAY_MS).toISOString(),
    workLocations: ripplingRows(n).map(({ workLocation }) => workLocation.label),
    payRangeDetails:
      n === 0
        ? [
            { rangeStart: 100_000, rangeEnd: 120_000, currency: 'USD', frequency: 'YEAR', location: null },
            { rangeStart: 110_000, rangeEnd: 140_000, currency: 'USD', frequency: 'YEAR', location: null },
            { rangeStart: 90_000, rangeEnd: 150_000, currency: 'EUR', frequency: 'YEAR', location: null },
          ]
        : [],
  }
}

/** Its only board is `acme`. */
export async function startRipplingMock(options: MockOptions): Promise<BoardServer> {
  const base = '/platform/api/ats/v1/board/acme/jobs'
  return await startBoardServer(({ path }): BoardAnswer => {
    if (path === base) return { body: Array.from({ length: options.jobs }, (_, n) => ripplingRows(n)).flat() }
    const n = path.startsWith(`${base}/`) ? Number(path.slice(-12)) : Number.NaN
    return n >= 0 && n < options.jobs ? { body: ripplingJob(n) } : notFound
  }, options)
}
