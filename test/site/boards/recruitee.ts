/** A loopback Recruitee: all offers in one response, three flags for the workplace, dates that are not ISO. */
import { type BoardAnswer, type BoardServer, type MockOptions, notFound, startBoardServer } from './ats-server.ts'

export interface RecruiteeOptions extends MockOptions {
  /** As for a subdomain that does not exist. */
  isNobodys?: boolean
}

/** The n-th offer; higher numbers are older. */
function recruiteeOffer(n: number) {
  const at = new Date(Date.UTC(2026, 10, 10, 9) - n * 86_400_000)
    .toISOString()
    .replace('T', ' ')
    .replace('.000Z', ' UTC')
  return {
    id: 700_000 + n,
    slug: `engineer-${n}`,
    title: `${['Backend', 'Frontend'][n % 2]} Engineer ${n}`,
    position: n,
    company_name: 'Acme B.V.',
    careers_url: `https://acme.recruitee.com/o/engineer-${n}`,
    careers_apply_url: `https://acme.recruitee.com/o/engineer-${n}/c/new`,
    location: 'Amsterdam, Netherlands',
    city: 'Amsterdam',
    state_code: 'NH',
    country_code: 'NL',
    locations:
      n % 3 === 0
        ? [
            { id: 1, name: 'HQ', city: 'Amsterdam', state: null, country: 'Netherlands', country_code: 'NL' },
            { id: 2, name: 'South', city: 'Antwerp', state: null, country: 'Belgium', country_code: 'BE' },
          ]
        : [],
    remote: n % 4 === 1,
    hybrid: n % 4 === 2,
    on_site: n % 4 === 0,
    employment_type_code: ['fulltime_permanent', 'parttime_permanent', 'internship', 'freelance'][n % 4],
    department: 'Engineering',
    salary:
      n % 2 === 0
        ? { min: '4000', max: '5500', currency: 'EUR', period: 'month' }
        : { min: null, max: null, currency: null, period: null },
    description: `<p>Build ${n % 5 === 0 ? 'Rust' : 'Go'} engines.</p>`,
    requirements: '<ul><li>Patience</li></ul>',
    created_at: '2025-01-01 08:00:00 UTC',
    published_at: at,
  }
}

export async function startRecruiteeMock(options: RecruiteeOptions): Promise<BoardServer> {
  const { jobs, isNobodys = false } = options
  return await startBoardServer(({ path }): BoardAnswer => {
    if (path !== '/api/offers' || isNobodys) return notFound
    return { body: { offers: Array.from({ length: jobs }, (_, n) => recruiteeOffer(n)) } }
  }, options)
}
