/**
 * A loopback Workday: lists by POST, 20 per page, a total that stops at 2000 and is right only on the first page, later pages
 * that repeat the first one, facets with counts; a response for each posting.
 */
import { type BoardAnswer, type BoardServer, type MockOptions, notFound, startBoardServer } from './ats-server.ts'

export interface WorkdayOptions extends MockOptions {
  /** Every fifth posting has no job family. */
  hasOrphans?: boolean
}

const TOTAL_MAX = 2000
const PAGE_MAX = 20
const ROOT = '/wday/cxs/acme/External'
const FAMILIES = ['eng', 'ops', 'sales']
const CITIES = ['US-TX-AUSTIN-BLDG 1 ~ 1 Main Street', 'Berlin, Germany', 'London, United Kingdom']

export const workdayId = (n: number) => `R${String(n).padStart(5, '0')}`
const pathOf = (n: number) => `/job/Austin/Engineer-${n}_${workdayId(n)}`

/** Facet values of the n-th posting. */
function facetsOf(n: number, hasOrphans: boolean): Record<string, string[]> {
  return {
    jobFamilyGroup: hasOrphans && n % 5 === 0 ? [] : [FAMILIES[n % 3]!],
    timeType: [n % 4 === 0 ? 'part' : 'full'],
    locations: n % 10 === 0 ? ['0', '1'] : [String(n % 3)],
  }
}

function listed(n: number) {
  return {
    title: `${['Backend', 'Frontend'][n % 2]} Engineer ${n}`,
    externalPath: pathOf(n),
    locationsText: n % 10 === 0 ? '2 Locations' : CITIES[n % 3],
    postedOn: n === 0 ? 'Posted Today' : n > 30 ? 'Posted 30+ Days Ago' : `Posted ${n} Days Ago`,
    remoteType: ['Fully Remote', 'Hybrid', 'Onsite'][n % 3],
    timeType: n % 4 === 0 ? 'Part time' : 'Full time',
    bulletFields: [workdayId(n)],
  }
}

function whole(n: number) {
  const { title, remoteType, timeType, postedOn } = listed(n)
  return {
    jobPostingInfo: {
      id: 'ab12cd34',
      title,
      jobDescription: `<p>Write ${n % 10 === 5 ? 'Rust' : 'Go'}.</p>`,
      location: CITIES[n % 10 === 0 ? 0 : n % 3],
      additionalLocations: n % 10 === 0 ? [CITIES[1]] : [],
      postedOn,
      startDate: new Date(Date.now() - n * 86_400_000).toISOString().slice(0, 10),
      timeType,
      remoteType,
      jobReqId: workdayId(n),
      externalUrl: `https://acme.wd5.myworkdayjobs.com/External${pathOf(n)}`,
    },
    hiringOrganization: { name: '100 Acme Inc.', url: '' },
  }
}

interface ListRequest {
  appliedFacets: Record<string, string[]>
  limit: number
  offset: number
  searchText: string
}

/** Its only careers site is `External` of the tenant `acme`. */
export async function startWorkdayMock(options: WorkdayOptions): Promise<BoardServer> {
  const { jobs, hasOrphans = false } = options
  const all = Array.from({ length: jobs }, (_, n) => ({ n, facets: facetsOf(n, hasOrphans) }))
  const hasWords = (n: number, words: string) =>
    JSON.stringify([listed(n), whole(n)])
      .toLowerCase()
      .includes(words)

  function list({ appliedFacets, limit, offset, searchText }: ListRequest): BoardAnswer {
    if (limit > PAGE_MAX) return { status: 400, body: { errorCode: 'HTTP_400' } }
    const words = searchText.toLowerCase()
    const found = all.filter(
      ({ n, facets }) =>
        Object.entries(appliedFacets).every(([name, ids]) => ids.some((id) => facets[name]!.includes(id))) &&
        (words === '' || hasWords(n, words)),
    )
    const start = offset >= TOTAL_MAX ? 0 : offset
    const page = found.slice(start, start + limit).map(({ n }) => listed(n))
    if (offset > 0) return { body: { total: 0, jobPostings: page, facets: [] } }
    const count = (name: string) => {
      const counts = new Map<string, number>()
      for (const { facets } of found) for (const id of facets[name]!) counts.set(id, (counts.get(id) ?? 0) + 1)
      return [...counts].map(([id, count]) => ({ id, descriptor: id.toUpperCase(), count }))
    }
    return {
      body: {
        total: Math.min(found.length, TOTAL_MAX),
        jobPostings: page,
        facets: [
          { facetParameter: 'timeType', values: count('timeType') },
          { facetParameter: 'jobFamilyGroup', values: count('jobFamilyGroup') },
          {
            facetParameter: 'locationMainGroup',
            values: [{ facetParameter: 'locations', descriptor: 'Locations', values: count('locations') }],
          },
        ],
      },
    }
  }

  return await startBoardServer(({ method, path, body }): BoardAnswer => {
    if (method === 'POST' && path === `${ROOT}/jobs`) return list(body as ListRequest)
    const n = Number(/_R(\d+)$/.exec(path)?.[1])
    return method === 'GET' && path === ROOT + pathOf(n) && n < jobs ? { body: whole(n) } : notFound
  }, options)
}
