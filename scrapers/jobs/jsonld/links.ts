/** Which links of a careers page lead to jobs, and which one to the next page of the list. */
import type { DocumentSelection } from 'sluice'

/** A path segment that precedes a job, in the languages of most careers pages; the job's own segment follows it. */
const JOB_PATH =
  /\/(?:jobs?|careers?|positions?|vacanc(?:y|ies)|openings?|postings?|opportunit(?:y|ies)|roles?|requisitions?|stellen(?:angebote?|anzeigen?)?|karriere|offene-stellen|emplois?|offres?(?:-d-?emploi)?|carrieres?|vacatures?|empleos?|ofertas?|vagas?|lavora-con-noi|posizioni|jobb|lediga-jobb|stillinger|praca|oferty-pracy|kariera)\/(?:[^/]+\/){0,3}(?:[^/]{3,}|\d+)\/?$/i
/** Pages around the jobs. */
const NO_JOB =
  /\/(?:search|login|signin|register|apply|saved|alerts?|locations?|departments?|teams?|categor(?:y|ies)|tags?|page|benefits|culture|about(?:-us)?|faq|students|events?|blog|news|privacy|imprint|impressum|feed|rss)(?:\/|$)|\.(?:pdf|jpe?g|png|svg|css|js|xml|zip)$/i

const LINKS_MAX = 50_000

export function isJobPage(link: URL, page: URL, part?: string): boolean {
  if (link.host !== page.host || !/^https?:$/.test(link.protocol)) return false
  if (part !== undefined) return (link.pathname + link.search).includes(part)
  return JOB_PATH.test(link.pathname) && !NO_JOB.test(link.pathname)
}

/** Links to job pages on the same host, each once, in page order. */
export function jobLinks($: DocumentSelection, page: URL, part?: string): string[] {
  const base = URL.parse($.attr('base[href]', 'href', { optional: true }) ?? page.href)?.href ?? page.href
  const found = new Set<string>()
  for (const anchor of $.all('a[href]').slice(0, LINKS_MAX)) {
    const link = URL.parse(anchor.ownAttr('href') ?? '', base)
    if (link === null || !isJobPage(link, page, part)) continue
    link.hash = ''
    found.add(link.href)
  }
  found.delete(page.href)
  return [...found]
}

export function nextPage($: DocumentSelection, page: URL): URL | undefined {
  const href = $.attr('a[rel~="next"], link[rel~="next"]', 'href', { optional: true })
  const next = href === undefined ? null : URL.parse(href, page.href)
  return next === null || next.host !== page.host || next.href === page.href ? undefined : next
}
