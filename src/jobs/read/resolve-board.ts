/** Which applicant tracking system's board a URL belongs to: derived from host and path, nothing is fetched. */
import type { Source } from './posting.ts'

/** A board: its platform, and the company's name there. */
export interface BoardAddress {
  source: Source
  /** The employer's name on the platform. */
  board: string
  /** Arguments for the scraper of that platform: `sluice run SOURCE --arg board=…`, some need more. */
  args: { board: string } & Readonly<Record<string, string>>
}

/** A token becomes part of a host name or path: anything that could change the rest of the URL is rejected. */
const BOARD_TOKEN = /^[A-Za-z0-9][A-Za-z0-9._-]*$/
const TOKEN_CHARS_MAX = 100

/** Hosts that serve all tenants, each under its own path. */
const PATH_HOSTS: Readonly<Record<string, { source: Source; more?: Record<string, string> }>> = {
  'boards.greenhouse.io': { source: 'greenhouse' },
  'job-boards.greenhouse.io': { source: 'greenhouse' },
  // One API host serves the boards of both regions.
  'boards.eu.greenhouse.io': { source: 'greenhouse' },
  'job-boards.eu.greenhouse.io': { source: 'greenhouse' },
  'jobs.lever.co': { source: 'lever' },
  'jobs.eu.lever.co': { source: 'lever', more: { region: 'eu' } },
  'jobs.ashbyhq.com': { source: 'ashby' },
  'apply.workable.com': { source: 'workable' },
  'careers.smartrecruiters.com': { source: 'smartrecruiters' },
  'jobs.smartrecruiters.com': { source: 'smartrecruiters' },
  'ats.rippling.com': { source: 'rippling' },
}

/** APIs with a path before the tenant, the machine-readable counterparts of the pages above. */
const API_PATHS: Readonly<Record<string, { source: Source; prefix: string; more?: Record<string, string> }>> = {
  'boards-api.greenhouse.io': { source: 'greenhouse', prefix: '/v1/boards/' },
  'api.lever.co': { source: 'lever', prefix: '/v0/postings/' },
  'api.eu.lever.co': { source: 'lever', prefix: '/v0/postings/', more: { region: 'eu' } },
  'api.ashbyhq.com': { source: 'ashby', prefix: '/posting-api/job-board/' },
  'api.smartrecruiters.com': { source: 'smartrecruiters', prefix: '/v1/companies/' },
  'api.rippling.com': { source: 'rippling', prefix: '/platform/api/ats/v1/board/' },
}

/** Hosts with a subdomain per tenant. */
const TENANT_HOSTS: readonly { suffix: string; source: Source; isUnusual?: true }[] = [
  { suffix: '.recruitee.com', source: 'recruitee' },
  { suffix: '.teamtailor.com', source: 'teamtailor' },
  { suffix: '.breezy.hr', source: 'breezy' },
  { suffix: '.bamboohr.com', source: 'bamboohr' },
  { suffix: '.jobs.personio.de', source: 'personio' },
  { suffix: '.jobs.personio.com', source: 'personio', isUnusual: true },
  { suffix: '.pinpointhq.com', source: 'pinpoint' },
]

/** The platforms' own subdomains, which are never employers. */
const NO_TENANT = new Set(
  'www api app apps help support blog docs developer developers static assets images media cdn status login go info resources partners community widget widgets analytics careers-analytics'.split(
    ' ',
  ),
)
/** First path segments that are pages of the platform. */
const NO_PATH_TENANT = new Set('embed api static assets robots.txt sitemap.xml favicon.ico j'.split(' '))

/** The board that a URL leads to; undefined if it is not a known platform. */
export function resolveBoard(address: string): BoardAddress | undefined {
  const url = parse(address)
  if (url === undefined) return undefined
  const host = url.hostname.replace(/\.$/, '')
  return pathBoard(host, url) ?? apiBoard(host, url) ?? tenantBoard(host) ?? workdayBoard(host, url)
}

/** People write `jobs.lever.co/acme` without a scheme. */
function parse(address: string): URL | undefined {
  const text = address.trim()
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:/i.test(text) ? text : `https://${text.replace(/^\/\//, '')}`)
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url : undefined
}

const isToken = (text: string | undefined): text is string =>
  text !== undefined && text.length <= TOKEN_CHARS_MAX && BOARD_TOKEN.test(text) && !text.includes('..')

const partsOf = (path: string) => path.split('/').filter(Boolean)

function pathBoard(host: string, url: URL): BoardAddress | undefined {
  const known = Object.hasOwn(PATH_HOSTS, host) ? PATH_HOSTS[host] : undefined
  if (known === undefined) return undefined
  const parts = partsOf(url.pathname)
  // Embedded: /embed/job_board?for=acme (Greenhouse), /api/v1/widget/accounts/acme (Workable), /en-GB/acme (Rippling).
  const embedded = known.source === 'greenhouse' ? url.searchParams.get('for') : after(parts, 'accounts')
  const first = isLocale(parts[0]) ? parts[1] : parts[0]
  const board = embedded ?? first
  if (!isToken(board) || NO_PATH_TENANT.has(board.toLowerCase())) return undefined
  return { source: known.source, board, args: { board, ...known.more } }
}

function apiBoard(host: string, url: URL): BoardAddress | undefined {
  const known = Object.hasOwn(API_PATHS, host) ? API_PATHS[host] : undefined
  if (known === undefined || !url.pathname.startsWith(known.prefix)) return undefined
  const board = partsOf(url.pathname.slice(known.prefix.length))[0]
  if (!isToken(board)) return undefined
  return { source: known.source, board, args: { board, ...known.more } }
}

function tenantBoard(host: string): BoardAddress | undefined {
  const known = TENANT_HOSTS.find(({ suffix }) => host.endsWith(suffix))
  if (known === undefined) return undefined
  const board = host.slice(0, -known.suffix.length)
  if (!isToken(board) || board.includes('.') || board.endsWith('-cdn') || NO_TENANT.has(board)) return undefined
  return { source: known.source, board, args: { board, ...(known.isUnusual ? { site: `https://${host}/` } : {}) } }
}

/** `{tenant}.wd{N}.myworkdayjobs.com/{locale?}/{site}`, and its API `/wday/cxs/{tenant}/{site}`. */
function workdayBoard(host: string, url: URL): BoardAddress | undefined {
  const [, board, instance] = /^([a-z0-9][a-z0-9_-]*)\.(wd\d{1,4})\.myworkdayjobs\.com$/.exec(host) ?? []
  if (!isToken(board) || instance === undefined) return undefined
  const parts = partsOf(url.pathname)
  const careers = parts[0] === 'wday' ? parts[3] : isLocale(parts[0]) ? parts[1] : parts[0]
  if (!isToken(careers)) return undefined
  return { source: 'workday', board, args: { board, instance, careers } }
}

const isLocale = (part: string | undefined) => part !== undefined && /^[a-z]{2}[-_][A-Za-z]{2}$/.test(part)

function after(parts: readonly string[], name: string): string | undefined {
  const at = parts.indexOf(name)
  return at === -1 ? undefined : parts[at + 1]
}
