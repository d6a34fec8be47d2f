/** A loopback SmartRecruiters: list pages of at most 100 by offset, text and pay only on a posting's own page. */
import { type BoardAnswer, type BoardServer, type MockOptions, notFound, startBoardServer } from './ats-server.ts'

export interface SmartRecruitersOptions extends MockOptions {
  /** Number of additional postings that are not public. */
  hidden?: number
  /** Maximum page size, whatever was requested. Default 100. */
  pageMax?: number
}

const TYPES = ['permanent', 'part-time', 'contract', 'intern']

export const smartId = (n: number) => String(743_999_000_000_000 + n)

/** The n-th posting as in the list; higher numbers are older. */
function listedJob(n: number) {
  const type = TYPES[n % TYPES.length]!
  return {
    id: smartId(n),
    uuid: `5a5a0000-0000-4000-8000-${String(n).padStart(12, '0')}`,
    name: `${['Backend', 'Frontend'][n % 2]} Engineer ${n}`,
    refNumber: `REF${n}A`,
    company: { identifier: 'Acme', name: 'Acme Inc.' },
    releasedDate: new Date(Date.UTC(2026, 10, 10, 9) - n * 86_400_000).toISOString(),
    location: {
      city: n % 3 === 0 ? 'Warsaw' : 'Austin',
      region: n % 3 === 0 ? null : 'TX',
      country: n % 10 === 9 ? 'remote' : n % 3 === 0 ? 'pl' : 'us',
      remote: n % 5 === 1,
      hybrid: n % 5 === 2,
      ...(n % 3 === 0 ? { latitude: '52.2297', longitude: '21.0122' } : {}),
    },
    industry: { id: 'computer_software', label: 'Computer Software' },
    department: { id: '1', label: 'Engineering' },
    function: { id: 'engineering', label: 'Engineering' },
    typeOfEmployment: { id: type, label: type.toUpperCase() },
    experienceLevel: { id: 'mid_senior_level', label: 'Mid-Senior Level' },
    ref: `https://api.smartrecruiters.com/v1/companies/Acme/postings/${smartId(n)}`,
    visibility: 'PUBLIC',
  }
}

function wholeJob(n: number) {
  return {
    ...listedJob(n),
    postingUrl: `https://jobs.smartrecruiters.com/Acme/${smartId(n)}-engineer-${n}`,
    applyUrl: `https://jobs.smartrecruiters.com/Acme/${smartId(n)}-engineer-${n}?oga=true`,
    jobAd: {
      sections: {
        companyDescription: { title: 'Company Description', text: '<p>We are Acme.</p>' },
        jobDescription: { title: 'Job Description', text: `<p>Write ${n % 10 === 5 ? 'Rust' : 'Go'}.</p>` },
        qualifications: { title: 'Qualifications', text: '<ul><li>Patience</li></ul>' },
        additionalInformation: { title: 'Additional Information', text: '' },
      },
    },
    compensation: { salary: { min: 50, max: 70, currency: 'USD', period: 'HOURLY' } },
  }
}

/** Its only board is `Acme`. */
export async function startSmartRecruitersMock(options: SmartRecruitersOptions): Promise<BoardServer> {
  const { jobs, hidden = 0, pageMax = 100 } = options
  const base = '/v1/companies/Acme/postings'
  const total = jobs + hidden
  return await startBoardServer(({ path, query }): BoardAnswer => {
    if (path === base) {
      const offset = Number(query.get('offset') ?? 0)
      const limit = Math.min(pageMax, Number(query.get('limit') ?? 10))
      const content = Array.from({ length: Math.max(0, Math.min(limit, total - offset)) }, (_, i) =>
        offset + i < jobs ? listedJob(offset + i) : { ...listedJob(offset + i), visibility: 'PRIVATE' },
      )
      return { body: { offset, limit, totalFound: total, content } }
    }
    const n = path.startsWith(`${base}/`) ? Number(path.slice(base.length + 1)) - Number(smartId(0)) : -1
    return n >= 0 && n < total ? { body: wholeJob(n) } : notFound
  }, options)
}
