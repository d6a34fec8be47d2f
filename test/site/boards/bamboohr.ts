/** A loopback BambooHR: a list without texts, a response for each posting, and the embedded page if the list is off. */
import { type BoardAnswer, type BoardServer, type MockOptions, notFound, startBoardServer } from './ats-server.ts'

export interface BamboohrOptions extends MockOptions {
  /** The list responds with 404; only the page that sites embed is available. */
  isListOff?: boolean
}

const DAY_MS = 86_400_000

const placeOf = (n: number) => (n % 2 === 0 ? { city: 'Lindon', state: 'Utah' } : { city: 'Boise', state: 'Idaho' })

/** The n-th entry of the list. */
function bamboohrEntry(n: number) {
  return {
    id: String(500 + n),
    jobOpeningName: `${['Welder', 'Fitter', 'Planner'][n % 3]} ${n}`,
    departmentId: '18',
    departmentLabel: 'Workshop',
    employmentStatusLabel: n % 2 === 0 ? 'Full-Time' : 'Contractor',
    location: placeOf(n),
    atsLocation: { country: null, state: null, city: null },
    isRemote: null,
    locationType: String(n % 3),
  }
}

/** Its own response; higher numbers are older. */
function opening(n: number) {
  return {
    jobOpeningShareUrl: `https://acme.bamboohr.com/careers/${500 + n}`,
    jobOpeningName: bamboohrEntry(n).jobOpeningName,
    departmentLabel: 'Workshop',
    employmentStatusLabel: bamboohrEntry(n).employmentStatusLabel,
    isRemote: null,
    location: { ...placeOf(n), postalCode: '84042', addressCountry: 'United States' },
    description: `<p>Work with ${n % 5 === 0 ? 'titanium' : 'steel'}.</p>`,
    compensation: n === 0 ? '$25 - $30 per hour' : null,
    datePosted: new Date(Date.UTC(2026, 10, 10) - n * DAY_MS).toISOString().slice(0, 10),
    minimumExperience: 'Mid-level',
    locationType: String(n % 3),
  }
}

const embedded = (jobs: number, isRenamed: boolean) =>
  `<div id="BambooHR" class="BambooHR-ATS-board"><h2>Current Openings</h2><ul class="BambooHR-ATS-Jobs-List">${Array.from(
    { length: jobs },
    (_, n) =>
      `<li id="bhrPositionID_${500 + n}" class="BambooHR-ATS-Jobs-Item">${isRenamed ? '' : `<a href="//acme.bamboohr.com/careers/${500 + n}">${bamboohrEntry(n).jobOpeningName}</a>`}<span class="BambooHR-ATS-Location">${placeOf(n).city}, ${placeOf(n).state}</span></li>`,
  ).join('')}</ul></div>`

/** Its only board is at the root; other paths have none. */
export async function startBamboohrMock(options: BamboohrOptions): Promise<BoardServer> {
  const { jobs, isListOff = false, isRenamed = false } = options
  const renamed = ({ jobOpeningName, ...entry }: ReturnType<typeof bamboohrEntry>) => ({
    ...entry,
    label: jobOpeningName,
  })
  return await startBoardServer(({ path }): BoardAnswer => {
    if (path === '/careers/list' && !isListOff) {
      const entries = Array.from({ length: jobs }, (_, n) => bamboohrEntry(n))
      return { body: { meta: { totalCount: jobs }, result: isRenamed ? entries.map(renamed) : entries } }
    }
    if (path === '/jobs/embed2.php') return { body: embedded(jobs, isRenamed) }
    const n = Number(/^\/careers\/(\d+)\/detail$/.exec(path)?.[1]) - 500
    return n >= 0 && n < jobs ? { body: { meta: {}, result: { jobOpening: opening(n), formFields: {} } } } : notFound
  }, options)
}
