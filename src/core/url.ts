/** URLs: one normalised form per page, and the identity a run remembers it by. */
import { hash } from 'node:crypto'
import { ScrapeError } from './errors.ts'
import type { NewTask } from './task.ts'

/** Longer URLs are traps or mistakes; 8 KiB is what common servers accept. */
export const URL_BYTES_MAX = 8192

/** Query parameters that identify a visit, not a page. */
const TRACKING = /^(?:utm_[a-z_]+|gclid|dclid|gbraid|wbraid|fbclid|msclkid|yclid|mc_[ce]id|igshid|_ga|_gl)$/i

/**
 * The normalised form in which a URL is queued and remembered: absolute, http(s), without fragment, credentials or tracking
 * parameters, with its parameters sorted. Throws `E_URL_INVALID` or `E_URL_SCHEME`.
 */
export function normaliseUrl(input: string | URL, base?: string | URL): string {
  const text = typeof input === 'string' ? input : input.href
  if (text.length > URL_BYTES_MAX) throw tooLong(text)
  const url = URL.parse(text, base === undefined ? undefined : String(base))
  if (url === null)
    throw new ScrapeError('E_URL_INVALID', `not a URL: ${JSON.stringify(text.slice(0, 200))}`, { url: text })
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new ScrapeError('E_URL_SCHEME', `${url.protocol} URLs are not fetched: ${text.slice(0, 200)}`, { url: text })
  }
  if (url.hostname === '') throw new ScrapeError('E_URL_INVALID', `no host in ${JSON.stringify(text)}`, { url: text })
  // Setting a part re-serialises the whole URL, so each is set only if present.
  if (url.hash !== '' || url.href.endsWith('#')) url.hash = ''
  if (url.username !== '' || url.password !== '') {
    url.username = ''
    url.password = ''
  }
  if (url.hostname.endsWith('.')) url.hostname = url.hostname.replace(/\.+$/, '')
  if (url.search !== '') sortQuery(url)
  else if (url.href.endsWith('?')) url.search = ''
  if (url.href.length > URL_BYTES_MAX) throw tooLong(url.href)
  return url.href
}

function tooLong(text: string): ScrapeError {
  const what = `a URL of ${text.length} characters (the limit is ${URL_BYTES_MAX})`
  return new ScrapeError('E_URL_INVALID', what, { url: `${text.slice(0, 200)}…` })
}

function sortQuery(url: URL): void {
  // A query is rewritten only if necessary: URLSearchParams changes the encoding of what it touches.
  const names = url.search
    .slice(1)
    .split('&')
    .map((pair) => decodedName(pair.split('=', 1)[0]!))
  const isSorted = names.every((name, i) => i === 0 || names[i - 1]! <= name)
  if (isSorted && !names.some((name) => TRACKING.test(name))) return
  const params = url.searchParams
  for (const name of names) if (TRACKING.test(name)) params.delete(name)
  params.sort()
}

/** `%75tm_source` is `utm_source`, and deletion uses the decoded name. */
function decodedName(name: string): string {
  if (!name.includes('%')) return name
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

/** `host:port` of a normalised URL, as rate limits count it. Cheaper than parsing it again. */
export function hostOf(url: string): string {
  const start = url.indexOf('//') + 2
  const end = url.indexOf('/', start)
  return end === -1 ? url.slice(start) : url.slice(start, end)
}

/** The path of a normalised URL, as `URL.pathname` has it. Cheaper than parsing it again. */
export function pathOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('//') + 2)
  const end = url.indexOf('?', start)
  return end === -1 ? url.slice(start) : url.slice(start, end)
}

/** The identity of a task in a run: SHA-256 of its key, else of its URL, as lower-case hex. */
export function taskId(task: Pick<NewTask, 'url' | 'key'>): string {
  return hash('sha256', task.key ?? task.url, 'hex')
}
