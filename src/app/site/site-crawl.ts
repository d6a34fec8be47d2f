/** The crawl that needs no code: follows the links of a site and records what it finds, with the fields the user asked for. */
import * as z from 'zod'
import { ScrapeError } from '../../core/errors.ts'
import { countNotFetched, type NotFetchedCounts } from '../../core/not-fetched.ts'
import { defineScraper, type Scraper } from '../../core/scraper.ts'
import type { DocumentSelection } from '../../core/selection.ts'
import { normaliseUrl } from '../../core/url.ts'
import { reportNotFetched } from '../../crawl/page-context.ts'
import { allLinks, type PageLink, select } from '../../extract/html.ts'
import { type Refusal, TrapGuard, withoutSession } from './trap-guard.ts'

/** Recorded for every page; the fields of `--select` follow. */
const OWN_FIELDS = {
  url: z.url(),
  status: z.int(),
  title: z.string().optional(),
  /** Number of distinct http(s) links on the page, to any site. */
  links: z.int().optional(),
  depth: z.int(),
  type: z.string().optional(),
  /** The page that first linked here. */
  from: z.string().optional(),
  /** Why its links were not followed, if they were not. */
  note: z.string().optional(),
}

const CRAWL_PAGES_MAX = 1_000
const CRAWL_DEPTH_MAX = 10

/** Recorded, not retried: in a site crawl, a dead link is a finding. */
const NOTED_STATUSES = [401, 404, 410, 451]

/** One `--select name=css` or `name=css@attr`. */
interface SelectedField {
  name: string
  css: string
  attr?: string | undefined
}

/** Throws `E_USAGE` for an invalid field or CSS selector, before the first request. */
export function parseSelected(texts: readonly string[]): SelectedField[] {
  const fields: SelectedField[] = []
  for (const text of texts) {
    const [, name = '', rest = ''] = /^([A-Za-z_]\w{0,63})=(.+)$/s.exec(text) ?? []
    const [, css, attr] = /^(.*?)@([A-Za-z_:][\w:.-]*)$/s.exec(rest) ?? [undefined, rest, undefined]
    const problem = fieldProblem(name, css!, fields)
    if (problem !== undefined)
      throw new ScrapeError('E_USAGE', `--select ${JSON.stringify(text)}: ${problem}`, {
        fix: "For example: --select price='p.price' --select image='img.cover@src'",
      })
    checkCss(text, css!)
    fields.push({ name, css: css!, attr })
  }
  return fields
}

function checkCss(text: string, css: string): void {
  try {
    select('', 'http://localhost/').exists(css)
  } catch (cause) {
    throw new ScrapeError('E_USAGE', `--select ${JSON.stringify(text)}: ${(cause as Error).message}`, {
      fix: 'Mend the selector; `sluice shell URL` is a place to try it.',
      cause,
    })
  }
}

function fieldProblem(name: string, css: string, before: readonly SelectedField[]): string | undefined {
  if (name === '' || css.trim() === '') return 'takes name=css, or name=css@attribute'
  if (Object.hasOwn(OWN_FIELDS, name)) return `"${name}" is a field every page has already`
  if (before.some((field) => field.name === name)) return `"${name}" is there twice`
  return undefined
}

/** `https://shop.example:8443/x` → `crawl-shop-example-8443`: its runs have their own folder, so `--resume` finds them. */
export function crawlName(url: string): string {
  const host = new URL(url).host.toLowerCase().replace(/[^a-z0-9]+/g, '-')
  return `crawl-${host.replace(/^-|-$/g, '')}`.slice(0, 64).replace(/-$/, '')
}

const argsSchema = z.object({
  url: z.url(),
  select: z.record(z.string(), z.object({ css: z.string(), attr: z.string().optional() })).default({}),
})

/** Data of a page: the hosts of the site, the referring page, and whether it is read once more for its links. */
const dataSchema = z.object({
  hosts: z.array(z.string()).default([]),
  from: z.string().optional(),
  isAgain: z.boolean().optional(),
})
type PageData = z.output<typeof dataSchema>

/** `fields` become the columns of the output; without them any field is accepted, which is what a worker process needs. */
export function siteCrawl(name: string, fields?: readonly string[]): Scraper {
  const selected = Object.fromEntries((fields ?? []).map((field) => [field, z.string().optional()]))
  const item = z.object({ ...OWN_FIELDS, ...selected })
  return defineScraper({
    name,
    description: 'Every page of a site, by its links',
    args: argsSchema,
    item: fields === undefined ? item.loose() : item,
    key: 'url',
    routes: { page: { accept: { status: NOTED_STATUSES, files: 'skip' }, data: dataSchema } },
    start: ({ args, enqueue }) => enqueue('page', { url: args.url, data: { hosts: [siteHost(args.url)] } }),
    handlers: {
      async page(context) {
        const { url, status, headers, depth, data, args, runId, emit, enqueue, log } = context
        if (depth === 0 && status >= 400)
          throw new ScrapeError(
            status === 401 ? 'E_UNAUTHORIZED' : 'E_NOT_FOUND',
            `status ${status} from ${url.href}`,
            {
              url: url.href,
              status,
            },
          )
        const type = String(headers['content-type'] ?? '')
          .split(';', 1)[0]!
          .trim()
          .toLowerCase()
        const known = { url: url.href, status, depth, type: type || undefined, from: data.from }
        if (!isHtml(type)) {
          await emit(known)
          return
        }
        const { $ } = context
        const leftOut: NotFetchedCounts = {}
        const links = allLinks($, url.href, { leftOut })
        // A start URL that redirects (to https, to www) adds its target to the site.
        const hosts = depth === 0 ? [...new Set([...data.hosts, siteHost(url.href)])] : data.hosts
        const guard = guardOf(runId)
        const { isAgain = false } = data
        const ours = sortOut(links, hosts, leftOut)
        if (!isAgain) {
          const refusal = whyNotFollow(guard, $, { url, status, headers, hosts })
          const note = links.length === 0 ? undefined : refusal?.why
          const title = $.text('title', { optional: true })
          const count = links.length + (leftOut.links ?? 0)
          await emit({ ...known, title, links: count, note, ...readFields($, args.select) })
          if (refusal !== undefined) {
            countNotFetched(leftOut, refusal.reason, ours.length)
            reportNotFetched(context, leftOut)
            if (note !== undefined && status < 400) warnOnce(guard, log, note, url.href)
            return
          }
        }
        const chosen = chooseLinks(guard, ours, { isAgain, leftOut })
        for (const [example, why] of chosen.refused) warnOnce(guard, log, why, example)
        if (!chosen.isWaiting) reportNotFetched(context, leftOut) // otherwise counted when it is read again
        const next: PageData = { hosts, from: url.href }
        await enqueue(
          'page',
          chosen.urls.map((target) => ({ url: target, data: next })),
        )
        // Read once more when everything else is done: by then it is known where the waiting links lead.
        if (chosen.isWaiting)
          await enqueue('page', {
            url,
            key: `${url.href} again`,
            priority: -1,
            data: { ...data, hosts, isAgain: true },
          })
      },
    },
    limits: { pages: CRAWL_PAGES_MAX, depth: CRAWL_DEPTH_MAX, hosts: 'any' },
    expect: { items: { min: 1 } },
  })
}

/** `www.` and the bare name are the same site. */
function siteHost(url: string): string {
  return new URL(url).host.replace(/^www\./, '')
}

const isHtml = (type: string) => type === '' || type === 'text/html' || type === 'application/xhtml+xml'

interface PageFacts {
  url: URL
  status: number
  headers: Readonly<Record<string, string | string[]>>
  hosts: readonly string[]
}

function whyNotFollow(
  guard: TrapGuard,
  $: DocumentSelection,
  { url, status, headers, hosts }: PageFacts,
): Refusal | undefined {
  if (status >= 400) return { reason: 'error-page', why: `status ${status}` }
  if (!hosts.includes(siteHost(url.href))) return { reason: 'host', why: 'redirected off the site' }
  const images = $.all('img[src]').map((image) => image.ownAttr('src')!)
  const text = $.text('body', { optional: true }) ?? $.text()
  const trap = guard.read(url.href, { text, images })
  if (/\b(?:nofollow|none)\b/i.test(String(headers['x-robots-tag'] ?? '')))
    return { reason: 'nofollow', why: 'X-Robots-Tag: nofollow' }
  return trap
}

/**
 * Links within the site, as they are queued. Links marked nofollow are skipped: the site asks for it, or they are bait for
 * crawlers.
 */
function sortOut(links: readonly PageLink[], hosts: readonly string[], leftOut: NotFetchedCounts): string[] {
  const ours = new Set<string>()
  for (const link of links) {
    const url = usable(link.url)
    if (!hosts.includes(siteHost(link.url))) countNotFetched(leftOut, 'host')
    else if (link.nofollow) countNotFetched(leftOut, 'nofollow')
    else if (url === undefined) countNotFetched(leftOut, 'url')
    else ours.add(url)
  }
  return [...ours]
}

interface ChosenLinks {
  urls: string[]
  /** A few of the omitted links → the reason. */
  refused: Map<string, string>
  /** Some links cannot be judged yet. */
  isWaiting: boolean
}

const REFUSED_MAX = 10

/** Selects the links to follow. */
function chooseLinks(
  guard: TrapGuard,
  links: readonly string[],
  { isAgain, leftOut }: { isAgain: boolean; leftOut: NotFetchedCounts },
): ChosenLinks {
  const chosen: ChosenLinks = { urls: [], refused: new Map(), isWaiting: false }
  for (const url of links) {
    const advice = guard.judge(url)
    if (advice.kind === 'refuse') {
      countNotFetched(leftOut, advice.reason)
      if (chosen.refused.size < REFUSED_MAX) chosen.refused.set(url, advice.why)
    } else if (advice.kind === 'wait' && !isAgain) chosen.isWaiting = true
    else chosen.urls.push(url)
  }
  return chosen
}

function usable(url: string): string | undefined {
  try {
    return normaliseUrl(withoutSession(url))
  } catch {
    return undefined // too long: one bad link must not affect the others
  }
}

function readFields(
  $: DocumentSelection,
  selected: z.output<typeof argsSchema>['select'],
): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(selected).map(([name, { css, attr }]) => [
      name,
      attr === undefined ? $.text(css, { optional: true }) : $.attr(css, attr, { optional: true }),
    ]),
  )
}

/** One per run and process: its knowledge is only a hint (see there). A server that crawls for months keeps the last few. */
const guards = new Map<string, TrapGuard>()
const GUARDS_MAX = 16

function guardOf(runId: string): TrapGuard {
  let guard = guards.get(runId)
  if (guard === undefined) {
    if (guards.size >= GUARDS_MAX) guards.delete(guards.keys().next().value!)
    guard = new TrapGuard()
    guards.set(runId, guard)
  }
  return guard
}

/** A trap has thousands of entrances: one of each kind is reported per area of the site; every page has its own note. */
const warned = new WeakMap<TrapGuard, Set<string>>()
const WARNINGS_MAX = 20

function warnOnce(guard: TrapGuard, log: { warn(message: string): void }, why: string, url: string): void {
  const reasons = warned.get(guard) ?? new Set()
  warned.set(guard, reasons)
  const corner = new URL(url).pathname.split('/', 2).join('/')
  const kind = `${corner} ${why.replace(/https?:\S+|\/\S*|\d+/g, '')}`
  if (reasons.has(kind) || reasons.size >= WARNINGS_MAX) return
  reasons.add(kind)
  log.warn(`not followed: ${url}: ${why}`)
}
