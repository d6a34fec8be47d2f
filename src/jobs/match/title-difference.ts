/** How two titles differ: not at all, by a word only one of them has, or by a word that makes it a different job. */

import { placeKey } from '../read/location.ts'
import type { Place } from '../read/posting.ts'
import { companyKey, titleKey } from '../read/titles.ts'

/** Expansions beyond those of the identity hash: good enough for a comparison, too bold to put in a permanent hash. */
const EXPANDED: Readonly<Record<string, string>> = {
  dev: 'developer',
  devs: 'developer',
  admin: 'administrator',
  asst: 'assistant',
  assoc: 'associate',
  mktg: 'marketing',
  acct: 'account',
  vp: 'vice president',
  svp: 'senior vice president',
  evp: 'executive vice president',
  avp: 'assistant vice president',
  hr: 'human resources',
  qa: 'quality assurance',
  ml: 'machine learning',
  ai: 'artificial intelligence',
  sw: 'software',
  swe: 'software engineer',
  sde: 'software development engineer',
  sre: 'site reliability engineer',
  dir: 'director',
  exec: 'executive',
  rep: 'representative',
  reps: 'representative',
  ops: 'operations',
  svc: 'service',
  svcs: 'service',
  services: 'service',
  mfg: 'manufacturing',
  rn: 'registered nurse',
  intl: 'international',
  natl: 'national',
  mgmt: 'management',
  coord: 'coordinator',
  spec: 'specialist',
  tech: 'technology',
  cust: 'customer',
  eng: 'engineer',
  ui: 'ui',
  engr: 'engineer',
  internship: 'intern',
  apprenticeship: 'apprentice',
  traineeship: 'trainee',
  ft: '',
  pt: 'parttime',
}

const COMPOUNDS: readonly (readonly [RegExp, string])[] = [
  [/\bfront end\b/g, 'frontend'],
  [/\bback end\b/g, 'backend'],
  [/\bfull stack\b/g, 'fullstack'],
  [/\bdev ops\b/g, 'devops'],
  [/\bpart time\b/g, 'parttime'],
  [/\bfull time\b/g, ''],
  [/\be commerce\b/g, 'ecommerce'],
  [/\bdata base\b/g, 'database'],
  [/\bhealth care\b/g, 'healthcare'],
  [/\bcyber security\b/g, 'cybersecurity'],
  [/\bon site\b/g, 'onsite'],
  [/\bnode js\b/g, 'nodejs'],
  [/\breact js\b/g, 'react'],
  [/\bmid level\b/g, 'mid'],
  [/\bentry level\b/g, 'entry'],
]

/** Words that boards add to any title. */
const NEUTRAL = new Set(
  `
  a an and the of for in at to with und et y de der die das job position role vacancy opening opportunity hiring
  wanted needed urgent urgently now new immediate start remote hybrid onsite wfh fulltime permanent our we are is
  looking team based level grade m w d f x gn
`
    .trim()
    .split(/\s+/),
)

const SENIORITY = new Set(
  `
  senior junior lead principal staff intern trainee apprentice graduate head director chief entry mid associate
  vice president executive manager supervisor distinguished fellow expert student working parttime assistant
  deputy experienced professional advanced
`
    .trim()
    .split(/\s+/),
)
const LEVEL = /^(?:\d{1,2}|[ltep]\d{1,2})$/

export type TitleDifference = 'none' | 'seniority' | 'level' | 'speciality' | 'one-sided'

/** The words that titles are compared by, in order. Places of both postings are omitted at the end of a title. */
export function titleWords(
  title: string,
  { places, company }: { places: readonly Place[]; company: string | null },
): string[] {
  let text = withoutCompany(titleKey(title, places), companyKey(company))
  text = text
    .split(' ')
    .map((word) => (Object.hasOwn(EXPANDED, word) ? EXPANDED[word]! : word))
    .join(' ')
  for (const [pattern, one] of COMPOUNDS) text = text.replace(pattern, one)
  const words = text.split(' ').filter((word) => word !== '' && !NEUTRAL.has(word))
  return [...new Set(words.map(singular))].sort()
}

/** "Engineer | Acme", "Engineer at Acme". */
function withoutCompany(title: string, company: string): string {
  return company !== '' && title.endsWith(` ${company}`) ? title.slice(0, -company.length - 1) : title
}

/** "analysts" is "analyst"; "sales", "business" and "c" stay. */
const singular = (word: string) => (/^[a-z]{5,}[^s]s$/.test(word) && word !== 'sales' ? word.slice(0, -1) : word)

export function titleDifference(a: readonly string[], b: readonly string[]): TitleDifference {
  const [restA, restB] = withoutMisspelt(
    a.filter((word) => !b.includes(word)),
    b.filter((word) => !a.includes(word)),
  )
  const rest = [...restA, ...restB]
  if (rest.length === 0) return 'none'
  if (rest.some((word) => LEVEL.test(word))) return 'level'
  if (rest.some((word) => SENIORITY.has(word))) return 'seniority'
  return restA.length > 0 && restB.length > 0 ? 'speciality' : 'one-sided'
}

/** Two long words that differ by one letter count as the same. */
function withoutMisspelt(a: string[], b: string[]): [string[], string[]] {
  const restB = [...b]
  const restA = a.filter((word) => {
    const at = restB.findIndex((other) => isMisspelt(word, other))
    if (at === -1) return true
    restB.splice(at, 1)
    return false
  })
  return [restA, restB]
}

function isMisspelt(a: string, b: string): boolean {
  if (Math.min(a.length, b.length) < 7 || a[0] !== b[0] || Math.abs(a.length - b.length) > 1 || /\d/.test(a + b))
    return false
  let from = 0
  while (from < a.length && a[from] === b[from]) from++
  let tail = 0
  while (tail < Math.min(a.length, b.length) - from && a.at(-1 - tail) === b.at(-1 - tail)) tail++
  return Math.max(a.length, b.length) - from - tail <= 1
}

/** What two sets of places have in common. */
type PlaceRelation = 'same' | 'compatible' | 'unknown' | 'disjoint'

export function placeRelation(a: readonly Place[], b: readonly Place[]): PlaceRelation {
  const citiesA = a.filter(({ city }) => city !== null)
  const citiesB = b.filter(({ city }) => city !== null)
  if (citiesA.length === 0 || citiesB.length === 0) {
    const countries = (places: readonly Place[]) => places.flatMap(({ country_iso2 }) => country_iso2 ?? [])
    const [ofA, ofB] = [countries(a), countries(b)]
    const isApart = ofA.length > 0 && ofB.length > 0 && !ofA.some((code) => ofB.includes(code))
    return isApart ? 'disjoint' : citiesA.length === citiesB.length ? 'same' : 'unknown'
  }
  const keysA = new Set(citiesA.map(placeKey))
  if (citiesB.some((place) => keysA.has(placeKey(place)))) return 'same'
  return citiesA.some((one) => citiesB.some((other) => mayBeOne(one, other))) ? 'compatible' : 'disjoint'
}

/** The same city as far as known: "Portland" may be "Portland, OR"; "Portland, ME" is not. */
function mayBeOne(a: Place, b: Place): boolean {
  const [cityA, regionA, countryA] = placeKey(a).split('|')
  const [cityB, regionB, countryB] = placeKey(b).split('|')
  const agree = (one = '', other = '') => one === '' || other === '' || one === other
  return cityA === cityB && agree(regionA, regionB) && agree(countryA, countryB)
}
