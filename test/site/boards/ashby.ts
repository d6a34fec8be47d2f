/** A loopback Ashby: the whole board in one response, some postings unlisted, pay in tiers. */
import { type BoardAnswer, type BoardServer, type MockOptions, notFound, startBoardServer } from './ats-server.ts'

export interface AshbyOptions extends MockOptions {
  /** Number of additional postings that must not be shown. */
  unlisted?: number
}

export const ashbyId = (n: number) => `a5b1c0de-0000-4000-8000-${String(n).padStart(12, '0')}`

const salary = (minValue: number, maxValue: number) => ({
  compensationType: 'Salary',
  interval: '1 YEAR',
  currencyCode: 'USD',
  minValue,
  maxValue,
  summary: '…',
})
const equity = {
  compensationType: 'EquityPercentage',
  interval: 'NONE',
  currencyCode: null,
  minValue: 0.1,
  maxValue: 0.5,
}

/** The n-th posting; higher numbers are older. */
function ashbyJob(n: number) {
  const workplaceType = ['Remote', 'Hybrid', 'OnSite', null][n % 4]
  return {
    id: ashbyId(n),
    title: `${['Backend', 'Frontend'][n % 2]} Engineer ${n}`,
    location: 'San Francisco',
    secondaryLocations:
      n % 3 === 0
        ? [{ location: 'Paris', address: { postalAddress: { addressLocality: 'Paris', addressCountry: 'France' } } }]
        : [],
    address: {
      postalAddress: { addressLocality: 'San Francisco', addressRegion: 'California', addressCountry: 'United States' },
    },
    department: 'Engineering',
    team: 'Core',
    isListed: true,
    isRemote: workplaceType === 'Remote',
    workplaceType,
    employmentType: n % 5 === 0 ? 'Intern' : 'FullTime',
    publishedAt: new Date(Date.UTC(2026, 10, 10, 9) - n * 86_400_000).toISOString().replace('Z', '+00:00'),
    descriptionHtml: `<p>Build <b>${n % 2 === 0 ? 'Rust' : 'Go'}</b>.</p>`,
    descriptionPlain: 'Build.',
    jobUrl: `https://jobs.ashbyhq.com/acme/${ashbyId(n)}`,
    applyUrl: `https://jobs.ashbyhq.com/acme/${ashbyId(n)}/application`,
    compensation: {
      compensationTierSummary: '$120K – $200K • Offers Equity',
      scrapeableCompensationSalarySummary: '$120K - $200K',
      compensationTiers: [
        { title: 'Zone 1', tierSummary: '$150K – $200K', components: [equity, salary(150_000, 200_000)] },
        { title: 'Zone 2', tierSummary: '$120K – $160K', components: [salary(120_000, 160_000)] },
      ],
    },
  }
}

/** Its one board is `acme`. */
export async function startAshbyMock(options: AshbyOptions): Promise<BoardServer> {
  const { jobs, unlisted = 0 } = options
  return await startBoardServer(({ path, query }): BoardAnswer => {
    if (path !== '/posting-api/job-board/acme') return notFound
    const list = Array.from({ length: jobs + unlisted }, (_, n) => {
      const { compensation, ...job } = { ...ashbyJob(n), isListed: n < jobs }
      return query.get('includeCompensation') === 'true' ? { ...job, compensation } : job
    })
    return { body: { apiVersion: '1', jobs: list } }
  }, options)
}
