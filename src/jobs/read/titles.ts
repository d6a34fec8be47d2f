/** Company names and titles, normalised for comparison. */
import type { Place } from './posting.ts'
import { fold } from './regions.ts'

const NAME_CHARS_MAX = 300

const LEGAL_FORMS = new Set(
  'inc incorporated corp corporation co company llc llp lp ltd limited plc gmbh ag kg se sa sas sarl srl spa bv nv ab as oy aps kk pty pvt'.split(
    ' ',
  ),
)

/** NFKC, lower case, no punctuation, no legal form at the end: "Contoso GmbH & Co. KG" is "contoso". */
export function companyKey(company: string | null): string {
  const words = (company ?? '')
    .slice(0, NAME_CHARS_MAX)
    .normalize('NFKC')
    .toLowerCase()
    .replace(/ß/g, 'ss')
    .replace(/ a\/s(?=\s*$)/, ' as')
    .replace(/[.'’`´]/g, '')
    .replace(/[^\p{L}\p{M}\p{N}]+/gu, ' ')
    .trim()
    .split(' ')
  // A name that consists only of a legal form is kept.
  while (words.length > 1 && LEGAL_FORMS.has(words.at(-1)!)) words.pop()
  return words.join(' ')
}

const DASHES = /[\u2010-\u2015\u2212\ufe58\ufe63\uff0d]/g
/** (m/w/d), m/f/x, (f/m/*), H/F, (gn): two to four single letters that include two genders. */
const GENDER =
  /(?<![\p{L}\p{N}])[([]?\s?(?:[mwfdxhvkniag*]\s?[/|,:]\s?){1,4}(?:[mwfdxhvkniag*]|div(?:ers|erse)?|gn)\s?[)\]]?(?![\p{L}\p{N}])/gu
const ALL_GENDERS = /[([]?(?:all|any|alle|tous)[ -](?:genders?|geschlechter|genres)[)\]]?|[([](?:gn|all|divers)[)\]]/gu
/** Entwickler:in, Entwickler*in, Entwickler/-in, Mitarbeiter(in). */
const FEMALE_END = /(?<=\p{L}{3})(?:[:*_]|\/-?|\()in(?:nen)?\)?(?![\p{L}\p{N}])/gu

const REQUISITION =
  /[\s,|([#-]+(?:(?:req(?:uisition)?|job|ref(?:erence)?|position|posting|vacancy|opening)?[ .:#-]{0,2}(?:id|no|nr|number)?[ .:#-]{0,3}|jr|r|p|req)[-_ #:]{0,2}(?:r|jr|req)?[-_]?\d{4,12}(?:-\d{1,4})?\s{0,2}[)\]]?$/u
const YEAR = /(?<!\d)(?:19|20)\d{2}\s{0,2}[)\]]?$/

const WORKPLACE_END = new Set([
  'remote',
  'hybrid',
  'onsite',
  'on site',
  'wfh',
  'home office',
  'homeoffice',
  'fully remote',
  '100 remote',
  'work from home',
  'remote work',
  'in office',
])

const EXPANDED: Readonly<Record<string, string>> = {
  sr: 'senior',
  snr: 'senior',
  jr: 'junior',
  jnr: 'junior',
  eng: 'engineer',
  engr: 'engineer',
  mgr: 'manager',
  i: '1',
  ii: '2',
  iii: '3',
  iv: '4',
  v: '5',
}

/**
 * Keeps what distinguishes jobs: seniority, level, speciality. Removes decoration added by boards: gender marks, a requisition
 * number, the workplace, or one of the posting's own places at the end.
 */
export function titleKey(title: string, places: readonly Place[] = []): string {
  let text = title.slice(0, NAME_CHARS_MAX).normalize('NFKC').toLowerCase().replace(DASHES, '-')
  text = text
    .replace(ALL_GENDERS, ' ')
    .replace(GENDER, (mark) => (isGenderMark(mark) ? ' ' : mark))
    .replace(FEMALE_END, '')
  text = text.replace(/\s+/g, ' ').trim()
  const names = placeNames(places)
  for (let turn = 0; turn < 4; turn++) {
    const before = text
    text = withoutRequisition(text)
    text = withoutLastPart(text, names)
    if (text === before) break
  }
  return words(text).map(expand).join(' ')
}

/** The words of a title; `+` and `#` are part of a word (C++, C#). */
function words(text: string): string[] {
  return text
    .replace(/(?<=\p{L})['’.](?=\p{L}|$|\s)/gu, '')
    .replace(/[^\p{L}\p{M}\p{N}+#]+/gu, ' ')
    .trim()
    .split(' ')
    .filter((word) => word !== '' && word !== '+' && word !== '#')
}

const expand = (word: string): string => (Object.hasOwn(EXPANDED, word) ? EXPANDED[word]! : word)

/** "i/a" and "d/x" do not name two genders; "a/d" is a converter. */
function isGenderMark(mark: string): boolean {
  const letters = new Set(mark.match(/[a-z*]/g))
  const hasMale = letters.has('m') || letters.has('h')
  const hasFemale = letters.has('w') || letters.has('f') || letters.has('v') || letters.has('k')
  return hasMale && hasFemale
}

function withoutRequisition(text: string): string {
  if (YEAR.test(text)) return text // "Intern 2026" and "Intern 2025" are different jobs
  const at = REQUISITION.exec(text.slice(-60))
  if (at === null || at[0].length >= text.length || !/^[\s,|([#-]/.test(at[0])) return text
  return text.slice(0, text.length - at[0].length).trimEnd()
}

/** Drops the last part after a dash, bar, comma or in parentheses if it only repeats the workplace or a place. */
function withoutLastPart(text: string, names: ReadonlySet<string>): string {
  const cuts = [
    text.lastIndexOf(' - '),
    text.lastIndexOf('|'),
    text.lastIndexOf(','),
    text.lastIndexOf('('),
    text.lastIndexOf('['),
    text.lastIndexOf(' in '),
    text.lastIndexOf('@'),
  ]
  // The city may be followed by its state: "engineer, boston, ma".
  const secondComma = text.lastIndexOf(',', text.lastIndexOf(',') - 1)
  for (const cut of [secondComma, ...cuts]) {
    if (cut <= 0) continue
    const part = fold(text.slice(cut).replace(/^ in /, ''))
    if (part === '' || isDressing(part, names)) return text.slice(0, cut).trim()
  }
  const last = /^(.{3,}?)\s(fully remote|remote|hybrid|on-?site|wfh)$/.exec(text)
  return last === null ? text : last[1]!.trim()
}

function isDressing(part: string, names: ReadonlySet<string>): boolean {
  if (WORKPLACE_END.has(part) || names.has(part)) return true
  const rest = part.replace(/^(?:remote|hybrid|onsite) (?:in |or |from )?|(?: or)? (?:remote|hybrid|onsite)$/, '')
  return rest !== part && (names.has(rest) || WORKPLACE_END.has(rest))
}

function placeNames(places: readonly Place[]): Set<string> {
  const names = new Set<string>()
  for (const { raw, city, region, country_iso2 } of places.slice(0, 20)) {
    for (const parts of [
      [raw],
      [city],
      [region],
      [country_iso2],
      [city, region],
      [city, country_iso2],
      [city, region, country_iso2],
    ]) {
      const name = fold(parts.filter((part) => part !== null).join(' '))
      if (name !== '') names.add(name)
    }
    if (country_iso2 !== null)
      for (const name of [country_iso2 === 'US' ? 'usa' : '', fold(raw.split(',').at(-1) ?? '')])
        if (name !== '') names.add(name)
  }
  return names
}
