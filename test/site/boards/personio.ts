/** A loopback Personio: one XML feed, German by default, and the page's search if the feed is off. */
import { escapeHtml } from '../html.ts'
import { type BoardAnswer, type BoardServer, type MockOptions, notFound, startBoardServer } from './ats-server.ts'

export interface PersonioOptions extends MockOptions {
  isFeedOff?: boolean
  /** Only this many first characters of the feed arrive. */
  cutAt?: number
}

const DAY_MS = 86_400_000

/** The n-th position; higher numbers are older. */
function personioPosition(n: number, language = 'en') {
  return {
    id: 9000 + n,
    name: `${language === 'de' ? 'Köchin' : 'Cook'} & ${n % 2 === 0 ? 'Baker' : 'Waiter'} ${n}`,
    subcompany: 'Acme Küchen GmbH',
    office: n % 2 === 0 ? 'Berlin' : 'Wien',
    department: 'Kitchen',
    recruitingCategory: 'Service',
    employmentType: ['permanent', 'intern', 'freelance'][n % 3]!,
    seniority: 'experienced',
    schedule: ['full-time', 'part-time'][n % 2]!,
    yearsOfExperience: '2-5',
    keywords: 'food,oven',
    occupation: 'cook',
    occupationCategory: 'gastronomy',
    createdAt: new Date(Date.UTC(2026, 10, 10, 9) - n * DAY_MS).toISOString().replace('.000Z', '+00:00'),
    description: `<p>Knead ${n % 5 === 0 ? 'rye' : 'wheat'} dough.</p>`,
  }
}

function toXml({ description, office, ...fields }: ReturnType<typeof personioPosition>, isRenamed: boolean): string {
  const tags = Object.entries(fields).map(([name, value]) =>
    isRenamed && name === 'name' ? '' : `<${name}>${escapeHtml(String(value))}</${name}>`,
  )
  return `<position>${tags.join('')}<office>${office}</office><additionalOffices><office>Hamburg</office></additionalOffices>
    <jobDescriptions><jobDescription><name>Your tasks</name><value><![CDATA[${description}]]></value></jobDescription>
    <jobDescription><name>Benefits</name><value><![CDATA[<ul><li>Bread</li></ul>]]></value></jobDescription></jobDescriptions></position>`
}

const toSearch = ({
  employmentType,
  recruitingCategory,
  createdAt: _,
  ...rest
}: ReturnType<typeof personioPosition>) => ({
  ...rest,
  employment_type: employmentType,
  recruiting_category: recruitingCategory,
})

/** Its only board is at the root; other paths have none. */
export async function startPersonioMock(options: PersonioOptions): Promise<BoardServer> {
  const { jobs, isFeedOff = false, isRenamed = false, cutAt } = options
  return await startBoardServer(({ path, query }): BoardAnswer => {
    const positions = Array.from({ length: jobs }, (_, n) => personioPosition(n, query.get('language') ?? 'de'))
    if (path === '/search.json' && isFeedOff) return { body: positions.map(toSearch) }
    if (path !== '/xml' || isFeedOff) return notFound
    const feed = `<?xml version="1.0" encoding="UTF-8"?>\n<workzag-jobs>${positions.map((position) => toXml(position, isRenamed)).join('\n')}</workzag-jobs>`
    return { headers: { 'content-type': 'text/xml; charset=utf-8' }, body: feed.slice(0, cutAt) }
  }, options)
}
