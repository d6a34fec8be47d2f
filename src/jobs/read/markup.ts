/** JobPosting markup from any careers page, JSON-LD or microdata, as raw postings. */
import type { DocumentSelection } from '../../core/selection.ts'
import { canonicalUrl } from './canonical-url.ts'
import { microdataPostings } from './markup-microdata.ts'
import { addressOf, field, isNode, listOf, type MarkupNode, textIn, textOf } from './markup-node.ts'
import { applicantCountries, placesOf } from './markup-place.ts'
import { salaryOf } from './markup-salary.ts'
import type { RawPosting } from './posting.ts'

const POSTINGS_MAX = 1000
/** Objects inspected per page. */
const NODES_MAX = 20_000

/** Every posting the page describes. `url` is the page's own URL. Never throws, whatever the page contains. */
export function readJobPostings($: DocumentSelection, url: string): RawPosting[] {
  const inJson = nodesOfType($, 'JobPosting')
  const nodes = inJson.length > 0 ? inJson : microdataPostings($)
  const isOnly = nodes.length === 1
  const page = { url: isOnly ? canonicalOf($, url) : url, isOnly }
  const postings = nodes.flatMap((node) => toRaw(node, page) ?? [])
  return [...new Map(postings.map((posting) => [posting.source_job_id, posting])).values()]
}

/** A page can be reached at many URLs; it declares its canonical one. */
function canonicalOf($: DocumentSelection, url: string): string {
  const named = addressOf($.attr('link[rel~="canonical"]', 'href', { optional: true }), url)
  if (named === undefined) return url
  const { host, pathname } = new URL(named)
  return host === new URL(url).host && pathname !== '/' ? named : url
}

/** Pages that an `ItemList` on the page links to, in order. */
export function readListedUrls($: DocumentSelection, url: string): string[] {
  const found = new Set<string>()
  for (const list of nodesOfType($, 'ItemList')) {
    for (const element of listOf(field(list, 'itemListElement'))) {
      const item = isNode(element) ? (field(element, 'item') ?? element) : element
      const address = addressOf(item, url)
      if (address !== undefined) found.add(address)
    }
  }
  return [...found]
}

/** Whether a page claims to describe a job, readable or not. */
export function mentionsJobPosting(html: string): boolean {
  return /"@type"\s{0,9}:\s{0,9}\[?\s{0,9}"(?:https?:\/\/schema\.org\/)?JobPosting"|schema\.org\/JobPosting/i.test(html)
}

/** Wherever they are: at the top level, in a graph, in a list, as the main entity of a page. */
function nodesOfType($: DocumentSelection, type: string): MarkupNode[] {
  const found: MarkupNode[] = []
  const waiting: unknown[] = $.jsonLd().reverse()
  for (let looked = 0; waiting.length > 0 && looked < NODES_MAX && found.length < POSTINGS_MAX; looked++) {
    const value = waiting.pop()
    if (Array.isArray(value)) for (let i = value.length - 1; i >= 0; i--) waiting.push(value[i])
    if (!isNode(value)) continue
    if (hasType(value, type)) found.push(value)
    else for (const inner of Object.values(value).reverse()) if (typeof inner === 'object') waiting.push(inner)
  }
  return [...new Set(found)] // $.jsonLd() has already expanded graphs, and they are expanded here again
}

function hasType(node: MarkupNode, type: string): boolean {
  return listOf(field(node, '@type') ?? field(node, 'type')).some(
    (name) => typeof name === 'string' && name.slice(-type.length - 1).replace(/^[/:#]/, '') === type,
  )
}

interface PageOfPosting {
  url: string
  /** If so, this page is the posting's page, whatever its markup says. */
  isOnly: boolean
}

function toRaw(node: MarkupNode, page: PageOfPosting): RawPosting | undefined {
  const title = textIn(node, 'title') ?? textIn(node, 'name')
  if (title === undefined) return undefined
  const organization = listOf(field(node, 'hiringOrganization'))[0]
  const company = textOf(organization)
  const requisition = identifierOf(node)
  const named = ownAddress(node, page)
  const job_url = named ?? page.url
  return {
    // On a page with many jobs without their own URLs, the page's URL alone would make them one job.
    source_job_id: named !== undefined || page.isOnly ? pathOf(job_url) : `${pathOf(job_url)}#${requisition ?? title}`,
    board_token: new URL(page.url).hostname,
    requisition_id: requisition,
    title,
    company: company === undefined || /^confidential\b/i.test(company) ? null : company,
    ...organizationOf(organization, page.url),
    locations: placesOf(node, company),
    workplace: listOf(field(node, 'jobLocationType')).map(textOf).find(Boolean),
    remote_countries: applicantCountries(node),
    employment_type: employmentOf(node),
    salary: salaryOf(node),
    date_posted: textIn(node, 'datePosted'),
    valid_through: textIn(node, 'validThrough'),
    description_html: descriptionOf(node),
    job_url,
    department: textIn(node, 'employmentUnit'),
    industry: textIn(node, 'industry'),
    function: textIn(node, 'occupationalCategory'),
    language: textIn(node, 'inLanguage'),
    raw: overflowOf(node),
  }
}

/** Some templates give the home page instead of the job's page. */
function ownAddress(node: MarkupNode, page: PageOfPosting): string | undefined {
  const address = addressOf(field(node, 'url'), page.url)
  return address === undefined || new URL(address).pathname === '/' ? undefined : address
}

const pathOf = (address: string) => {
  const { pathname, search } = new URL(canonicalUrl(address) ?? address)
  return pathname + search
}

function identifierOf(node: MarkupNode): string | undefined {
  const identifier = listOf(field(node, 'identifier'))[0]
  return isNode(identifier) ? textIn(identifier, 'value') : textOf(identifier)
}

function organizationOf(organization: unknown, base: string) {
  if (!isNode(organization)) return {}
  const site = field(organization, 'sameAs') ?? field(organization, 'url')
  return { company_url: addressOf(site, base), company_logo: addressOf(field(organization, 'logo'), base) }
}

/** Handles `["FULL_TIME"]` as well as `"FULL_TIME, CONTRACTOR"`. */
function employmentOf(node: MarkupNode): string[] {
  return listOf(field(node, 'employmentType')).flatMap((type) => textOf(type)?.split(/\s*[,;|]\s*/) ?? [])
}

const SECTIONS = ['responsibilities', 'qualifications', 'skills', 'experienceRequirements', 'educationRequirements']

/** If there is no description, the text is in these sections. */
function descriptionOf(node: MarkupNode): string | undefined {
  return (
    textIn(node, 'description') ??
    (SECTIONS.flatMap((name) => textIn(node, name) ?? [])
      .map((section) => `<div>${section}</div>`)
      .join('\n') ||
      undefined)
  )
}

const OVERFLOW =
  'directApply totalJobOpenings jobStartDate jobImmediateStart workHours jobBenefits incentiveCompensation'
const OVERFLOW_CHARS_MAX = 500

function overflowOf(node: MarkupNode): Record<string, unknown> {
  const raw: Record<string, unknown> = {}
  for (const name of OVERFLOW.split(' ')) {
    const value = field(node, name)
    const kept = typeof value === 'boolean' ? value : textOf(value)?.slice(0, OVERFLOW_CHARS_MAX)
    if (kept !== undefined) raw[name] = kept
  }
  return raw
}
