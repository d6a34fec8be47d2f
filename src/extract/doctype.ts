/** The doctype, and whether it puts a page into quirks mode. */
import { lowerCase } from './scan.ts'

interface Doctype {
  readonly name: string
  readonly publicId: string | undefined
  readonly systemId: string | undefined
  /** Broken or cut off. */
  readonly forcesQuirks: boolean
}

/** `source` from `<!doctype` to its `>`, or to the end of the page. */
export function parseDoctype(source: string): Doctype {
  const isWhole = source.endsWith('>')
  const text = source.slice(9, isWhole ? -1 : undefined).replaceAll('\0', '\uFFFD')
  const named = /^[\t\n\f\r ]*([^\t\n\f\r ]*)[\t\n\f\r ]*/.exec(text)!
  const name = lowerCase(named[1]!)
  const none = { name, publicId: undefined, systemId: undefined }
  const rest = text.slice(named[0].length)
  if (name === '') return { ...none, forcesQuirks: true }
  if (rest === '') return { ...none, forcesQuirks: !isWhole }
  const keyword = rest.slice(0, 6).toUpperCase()
  if (keyword !== 'PUBLIC' && keyword !== 'SYSTEM') return { ...none, forcesQuirks: true }
  const first = quoted(rest, 6)
  if (first.value === undefined) return { ...none, forcesQuirks: true }
  const ids = keyword === 'PUBLIC' ? { ...none, publicId: first.value } : { ...none, systemId: first.value }
  if (!first.isClosed) return { ...ids, forcesQuirks: true }
  if (keyword === 'SYSTEM') return { ...ids, forcesQuirks: !isWhole && /^[\t\n\f\r ]*$/.test(rest.slice(first.end)) }
  const second = quoted(rest, first.end)
  if (second.value === undefined) return { ...ids, forcesQuirks: second.hasMore || !isWhole }
  const isCut = !second.isClosed || (!isWhole && /^[\t\n\f\r ]*$/.test(rest.slice(second.end)))
  return { ...ids, systemId: second.value, forcesQuirks: isCut }
}

function quoted(text: string, from: number) {
  let i = from
  while (/[\t\n\f\r ]/.test(text[i] ?? '')) i++
  const quote = text[i]
  if (quote !== '"' && quote !== "'") return { value: undefined, hasMore: quote !== undefined, isClosed: false, end: i }
  const end = text.indexOf(quote, i + 1)
  return {
    value: text.slice(i + 1, end === -1 ? undefined : end),
    hasMore: true,
    isClosed: end !== -1,
    end: end === -1 ? text.length : end + 1,
  }
}

const QUIRKS_SYSTEM_ID = 'http://www.ibm.com/data/dtd/v11/ibmxhtml1-transitional.dtd'
const QUIRKS_PUBLIC_IDS = new Set([
  '-//w3o//dtd w3 html strict 3.0//en//',
  '-/w3c/dtd html 4.0 transitional/en',
  'html',
])
/** Beginnings of public ids, lower case. */
const QUIRKS_PREFIXES = [
  '+//silmaril//dtd html pro v0r11 19970101//',
  '-//as//dtd html 3.0 aswedit + extensions//',
  '-//advasoft ltd//dtd html 3.0 aswedit + extensions//',
  ...[
    '2.0 level 1', '2.0 level 2', '2.0 strict level 1', '2.0 strict level 2', '2.0 strict', '2.0', '2.1e', '3.0', '3.2 final', '3.2',
    '3', 'level 0', 'level 1', 'level 2', 'level 3', 'strict level 0', 'strict level 1', 'strict level 2', 'strict level 3', 'strict',
  ].map((version) => `-//ietf//dtd html ${version}//`), // biome-ignore format: a list of versions
  '-//ietf//dtd html//',
  '-//metrius//dtd metrius presentational//',
  ...['2.0 html strict', '2.0 html', '2.0 tables', '3.0 html strict', '3.0 html', '3.0 tables'].map(
    (version) => `-//microsoft//dtd internet explorer ${version}//`,
  ),
  '-//netscape comm. corp.//dtd html//',
  '-//netscape comm. corp.//dtd strict html//',
  "-//o'reilly and associates//dtd html 2.0//",
  "-//o'reilly and associates//dtd html extended 1.0//",
  "-//o'reilly and associates//dtd html extended relaxed 1.0//",
  '-//sq//dtd html 2.0 hotmetal + extensions//',
  '-//softquad software//dtd hotmetal pro 6.0::19990601::extensions to html 4.0//',
  '-//softquad//dtd hotmetal pro 4.0::19971010::extensions to html 4.0//',
  '-//spyglass//dtd html 2.0 extended//',
  '-//sun microsystems corp.//dtd hotjava html//',
  '-//sun microsystems corp.//dtd hotjava strict html//',
  ...[
    '3 1995-03-24', '3.2 draft', '3.2 final', '3.2', '3.2s draft', '4.0 frameset', '4.0 transitional', 'experimental 19960712',
    'experimental 970421',
  ].map((version) => `-//w3c//dtd html ${version}//`), // biome-ignore format: a list of versions
  '-//w3c//dtd w3 html//',
  '-//w3o//dtd w3 html 3.0//',
  '-//webtechs//dtd mozilla html 2.0//',
  '-//webtechs//dtd mozilla html//',
]
const QUIRKS_PREFIXES_WITHOUT_SYSTEM_ID = ['-//w3c//dtd html 4.01 frameset//', '-//w3c//dtd html 4.01 transitional//']

export function isQuirks({ name, publicId, systemId, forcesQuirks }: Doctype): boolean {
  if (forcesQuirks || name !== 'html' || systemId?.toLowerCase() === QUIRKS_SYSTEM_ID) return true
  const id = publicId?.toLowerCase()
  if (id === undefined) return false
  const begins = (prefix: string) => id.startsWith(prefix)
  return (
    QUIRKS_PUBLIC_IDS.has(id) ||
    QUIRKS_PREFIXES.some(begins) ||
    (systemId === undefined && QUIRKS_PREFIXES_WITHOUT_SYSTEM_ID.some(begins))
  )
}
