/** The postings in Google's pages: unnamed arrays, found by the number they are stored under. */
import { readJsonAt } from 'sluice/jobs'

const KEY = '520084652"'
const FOUND_MAX = 1000
/** Limits unterminated arrays, each of which costs a search to the end of the text. */
const UNREAD_MAX = 16
/** Nested strings: a response contains JSON as a string in JSON. */
const NESTING_MAX = 3

/** Positions in the array. */
const AT = { title: 0, company: 1, location: 2, links: 3, age: 12, description: 19, id: 28 } as const

export interface FoundJob {
  id: string
  title: string
  company: string | null
  location: string | null
  url: string
  age: string | null
  description: string | null
}

/** Entries under the number without a title, id or address are counted as broken. */
export function readJobArrays(text: string): { jobs: FoundJob[]; broken: number } {
  const jobs = new Map<string, FoundJob>()
  let broken = 0
  for (const fields of arraysIn(text, NESTING_MAX)) {
    const job = jobOf(fields)
    if (job === undefined) broken++
    else jobs.set(job.id, job)
  }
  return { jobs: [...jobs.values()], broken }
}

/** The token of the next page, even inside a string. */
export function nextToken(text: string): string | undefined {
  return /data-async-fc=\\?"([^"\\]{1,4000})/.exec(text)?.[1]
}

function arraysIn(text: string, nesting: number): unknown[][] {
  const found: unknown[][] = []
  let unread = 0
  for (let at = text.indexOf(KEY); at !== -1 && found.length < FOUND_MAX && unread < UNREAD_MAX; ) {
    const colon = /\s{0,9}:\s{0,9}/y
    colon.lastIndex = at + KEY.length
    const read = colon.test(text) ? readJsonAt(text, colon.lastIndex) : undefined
    if (read === undefined) unread++
    else if (Array.isArray(read.value)) found.push(read.value)
    at = text.indexOf(KEY, read?.end ?? at + KEY.length)
  }
  if (found.length > 0 || nesting === 0 || !text.includes(KEY.slice(0, -1))) return found
  return stringsIn(text).flatMap((inner) => arraysIn(inner, nesting - 1))
}

/** The strings in the text's JSON that mention the number. */
function stringsIn(text: string): string[] {
  const start = text.indexOf('[')
  const waiting: unknown[] = start === -1 ? [] : [readJsonAt(text, start)?.value]
  const strings: string[] = []
  while (waiting.length > 0 && strings.length < FOUND_MAX) {
    const value = waiting.pop()
    if (typeof value === 'string') {
      if (value.includes(KEY.slice(0, -1))) strings.push(value)
    } else if (typeof value === 'object' && value !== null)
      for (const inner of Object.values(value).reverse()) waiting.push(inner)
  }
  return strings
}

function jobOf(fields: unknown[]): FoundJob | undefined {
  const textAt = (place: number) => (typeof fields[place] === 'string' && fields[place] !== '' ? fields[place] : null)
  const title = textAt(AT.title)
  const id = textAt(AT.id)
  const links = fields[AT.links]
  const link = Array.isArray(links) && Array.isArray(links[0]) ? links[0][0] : undefined
  if (title === null || id === null || typeof link !== 'string' || !/^https?:/.test(URL.parse(link)?.protocol ?? ''))
    return undefined
  return {
    id,
    title,
    company: textAt(AT.company),
    location: textAt(AT.location),
    url: link,
    age: textAt(AT.age),
    description: textAt(AT.description),
  }
}
