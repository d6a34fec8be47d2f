/** Finds the boards a careers page leads to: an employer's own page often only wraps one. */
import { type BoardAddress, resolveBoard } from './resolve-board.ts'

/** An employer's page names one or two; a list of a thousand is a directory. */
const BOARDS_MAX = 50
const URL_CHARS_MAX = 500
const SCANNED_CHARS_MAX = 4 * 1024 ** 2

/** What every known host ends with: a cheap test that rules out most URLs on a page. */
const HOSTS =
  /(?:greenhouse\.io|lever\.co|ashbyhq\.com|workable\.com|smartrecruiters\.com|rippling\.com|recruitee\.com|teamtailor\.com|breezy\.hr|bamboohr\.com|personio\.(?:de|com)|pinpointhq\.com|myworkdayjobs\.com)/i
/** Matches links, frames, scripts and strings in scripts, including `\/` for `/` as in JSON. */
const ADDRESSES = /(?:https?:)?(?:\\?\/){2}[a-z0-9][a-z0-9.-]{3,250}(?:(?:\\?\/)[^\s"'<>`]*)?/gi

/** The boards a page links to or embeds, each once, in order. `base` is the page's URL; relative links never lead to a board. */
export function findBoards(html: string, base?: string): BoardAddress[] {
  const found = new Map<string, BoardAddress>()
  const add = (address: string) => {
    const board = resolveBoard(address)
    if (board !== undefined) found.set(`${board.source} ${JSON.stringify(board.args).toLowerCase()}`, board)
  }
  if (base !== undefined) add(base)
  for (const [address] of html.slice(0, SCANNED_CHARS_MAX).matchAll(ADDRESSES)) {
    if (found.size >= BOARDS_MAX) break
    if (HOSTS.test(address.slice(0, URL_CHARS_MAX))) add(readable(address.slice(0, URL_CHARS_MAX)))
  }
  return [...found.values()]
}

function readable(address: string): string {
  return address
    .replaceAll('\\/', '/')
    .replaceAll('&amp;', '&')
    .replace(/[)\]},;\\]+$/, '')
}
