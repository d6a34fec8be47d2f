/** A scraper: what to fetch and how to read it. One definition runs on a laptop and on a fleet. */
import type { StandardSchemaV1 as Schema } from '@standard-schema/spec'
import type { Page as DriverPage } from 'puppeteer-core'
import { ScrapeError } from './errors.ts'
import type { Limits } from './options.ts'
import type { Anchor, DocumentSelection } from './selection.ts'
import type { Json } from './task.ts'

type Out<T> = T extends Schema ? Schema.InferOutput<T> : never
type In<T> = T extends Schema ? Schema.InferInput<T> : never
type Awaitable<T> = T | Promise<T>
// biome-ignore lint/complexity/noBannedTypes: "no keys required" is exactly what {} means here
type Nothing = {}

/** A path parameter's name ends at the first non-word character. */
type NameOf<S extends string> = S extends `${infer Head}/${string}`
  ? NameOf<Head>
  : S extends `${infer Head}.${string}`
    ? NameOf<Head>
    : S extends `${infer Head}-${string}`
      ? NameOf<Head>
      : S
type NamesIn<P extends string> = P extends `${string}:${infer Rest}` ? NameOf<Rest> | NamesIn<Rest> : never
/** '/job/:id' → { id: string }; '/page-:n.html' → { n: string }; no parameters → {} */
type PathParams<P extends string> = { readonly [K in NamesIn<P>]: string }

export interface RouteDefinition {
  /**
   * Path pattern: `/job/:id`, `/page-:n.html`; `*` stands for anything. A URL belongs to the route with the most specific matching
   * pattern, no matter which route it is enqueued for. A route without a pattern gets URLs that no other route claims.
   */
  match?: string
  /** Schema of the data that tasks of this route carry; checked when they are enqueued. */
  data?: Schema
  /** How its pages are fetched. Default `http`. */
  fetch?: 'http' | 'browser'
  /** How the browser opens them. */
  browser?: BrowserRoute
  /**
   * `browser`: once a site has blocked a page (E_BLOCKED, E_CAPTCHA, E_FORBIDDEN), it is retried in a browser, if there is one.
   * The handler is the same, without `page`.
   */
  fallback?: 'browser'
  /** Field of its data that is sent as JSON in a POST request. Each body is a separate task. */
  post?: string
  /** Higher is claimed first. Default 0. */
  priority?: number
  lane?: string
  /** What reaches the handler in addition to text pages with a 2xx status: a list of statuses, or detailed rules. */
  accept?: Accept
  /** Extra request headers; they are only sent to the page's own origin. */
  headers?: Readonly<Record<string, string>>
}

/** `[404]` is short for `{ status: [404] }`. */
export type Accept = readonly number[] | AcceptRules

export interface AcceptRules {
  /** Statuses outside 2xx, and 204. */
  status?: readonly number[]
  /**
   * Content types other than text, HTML, XML and JSON: `application/pdf`, `image/*`. Other types fail with E_CONTENT_TYPE, and
   * their body is not read.
   */
  types?: readonly string[]
  /** `skip`: links that turn out to be files are skipped and counted instead of failing. A start page still fails. */
  files?: 'skip'
  /** Accept empty responses. Default false: E_EMPTY. */
  empty?: boolean
  /** Accept start pages that look like a block page or have almost no content. Default false: E_SUSPECT. */
  suspect?: boolean
}

export interface BrowserRoute {
  /** What must have happened before the handler is called. Default `load`. */
  waitUntil?: 'domcontentloaded' | 'load' | 'networkidle'
  /** A selector that must also match. */
  waitFor?: string
  /** Kinds of requests to block. */
  block?: readonly ResourceKind[]
  /** Only allow requests to the page's own site. Default false. */
  blockThirdParties?: boolean
}

export type ResourceKind = 'image' | 'font' | 'media' | 'stylesheet' | 'script' | 'xhr' | 'websocket' | 'other'

type Routes = Record<string, RouteDefinition>
type RouteData<D extends RouteDefinition> = D['data'] extends Schema ? Out<D['data']> : Nothing
type RouteDataIn<D extends RouteDefinition> = D['data'] extends Schema ? In<D['data']> : Nothing
type RouteParams<D extends RouteDefinition> = D['match'] extends string ? PathParams<D['match']> : Nothing

interface TargetOptions {
  url: string | URL
  priority?: number
  lane?: string
  /** Identity to use instead of the URL. */
  key?: string
  /** The user the page belongs to. The same URL is a separate task for each user. Default: the user of the page that found it. */
  session?: string
}
/** A URL, plus the route's data if its schema has fields without defaults. */
type Target<D extends RouteDefinition> =
  Nothing extends RouteDataIn<D>
    ? string | URL | (TargetOptions & { data?: RouteDataIn<D> })
    : TargetOptions & { data: RouteDataIn<D> }

export interface Enqueued {
  /** Accepted; the commit decides which of them are new to this run. In `start` the count is final. */
  added: number
  seen: number
  /** Not usable: not a URL, another host, too deep, over `linksMax`, no match for the route. */
  refused: number
  /** How many of those added went to another route because its `match` is more specific. */
  rerouted: number
  /** Not added, because another route already has the page, or claims it and needs data that was not given. */
  conflicts: number
}

interface Enqueue<R extends Routes> {
  <K extends keyof R & string>(route: K, target: Target<R[K]> | Iterable<Target<R[K]>>): Promise<Enqueued>
  /** Uses the route with the most specific matching `match`. Throws E_ROUTE_UNMATCHED if none matches. */
  (target: URL): Promise<Enqueued>
  /** Enqueues every link that the selector finds; routes whose data has no defaults need a mapper. */
  links<K extends keyof R & string>(
    route: K,
    css: string,
    ...map: Nothing extends RouteDataIn<R[K]>
      ? [((a: Anchor) => RouteDataIn<R[K]>)?]
      : [(a: Anchor) => RouteDataIn<R[K]>]
  ): Promise<Enqueued>
}

/** new: first of its key in this run · same/changed: its key was emitted before (the first one stays) · invalid: breaks the schema. */
export type Emitted = 'new' | 'same' | 'changed' | 'invalid'

export interface Log {
  debug(message: string, extra?: object): void
  info(message: string, extra?: object): void
  warn(message: string, extra?: object): void
}

/** The argument of a handler. */
export interface HandlerContext<I extends Schema, R extends Routes, K extends keyof R, A> {
  /** The URL of the page after redirects. */
  readonly url: URL
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[]>>
  readonly attempt: number
  readonly depth: number
  readonly runId: string
  /** When the page was fetched. Use it instead of the clock, so that replays give the same items. */
  readonly fetchedAt: Date
  readonly data: RouteData<R[K]>
  readonly params: RouteParams<R[K]>
  readonly args: A
  readonly $: DocumentSelection
  /** The decoded body. */
  readonly html: string
  readonly body: Buffer
  /** The body parsed as JSON. */
  json<T = unknown>(): T
  /** Emits an item to the sinks. Never throws for an invalid item, which is counted and kept in errors.jsonl. */
  emit(item: In<I>): Promise<Emitted>
  enqueue: Enqueue<R>
  /** Saves bytes under `files/` in the run folder; returns the path. */
  save(name: string, bytes: Uint8Array | string): Promise<string>
  /** Downloads a file in the background to the run's file store, with the cookies of this page's user. */
  file(url: string | URL, options?: FileOptions): Promise<Enqueued>
  /** The user this page belongs to. */
  readonly session: string | undefined
  /** Retries this page, after a backoff or `after` ('30s'). */
  retry(after?: string | number, why?: string): never
  /** Ends the handling of this page; items already emitted are kept. */
  skip(why: string): never
  /** Ends the run, which can be resumed. */
  stop(why: string): never
  /** The browser driver's page, on routes with `fetch: 'browser'`. */
  readonly page: R[K]['fetch'] extends 'browser' ? DriverPage : undefined
  /** The page as the browser shows it now, read like `$`; `$` itself is the page as it was when it had loaded. */
  readonly render: R[K]['fetch'] extends 'browser' ? () => Promise<DocumentSelection> : undefined
  /** Saves cookies and local storage for all further pages of this user, in any worker. */
  readonly keepLogin: R[K]['fetch'] extends 'browser' ? () => Promise<void> : undefined
  readonly log: Log
}

export interface FileOptions {
  /** The file's name; default: from the server or the URL. */
  name?: string
  /** Stored in its record. */
  meta?: Json
  priority?: number
}

interface Schedule {
  cron: string
  tz?: string
  overlap?: 'skip' | 'queue' | 'cancel-old'
  jitter?: string
  catchUp?: boolean
}

/** A sink that a scraper asks for. C = the columns it names, checked against the item's own keys. */
export interface SinkSpec<C extends string = never> {
  readonly kind: 'jsonl' | 'csv' | 'parquet' | 'sqlite'
  readonly path?: string
  readonly columns?: readonly C[]
  readonly formulaSafe?: boolean
}
/** Writes items as JSON Lines. */
export const jsonl = (options: { path?: string } = {}): SinkSpec => ({ kind: 'jsonl', ...options })
/** Writes items as CSV, to the run folder unless `path` is set. */
export const csv = <const C extends string = never>(
  options: { path?: string; columns?: readonly C[]; formulaSafe?: boolean } = {},
): SinkSpec<C> => ({ kind: 'csv', ...options })
/** Writes items as Parquet. */
export const parquet = (options: { path?: string } = {}): SinkSpec => ({ kind: 'parquet', ...options })
/** Writes items to an SQLite table. */
export const sqlite = (options: { path: string }): SinkSpec => ({ kind: 'sqlite', ...options })

/** Reads a page of route K. */
type Handler<K extends keyof R, I extends Schema, R extends Routes, A> = (
  context: HandlerContext<I, R, K, A>,
) => Awaitable<unknown>

/** A handler for each route. The names come first because compilers truncate long types at the end. */
type Handlers<K extends keyof R, I extends Schema, R extends Routes, A> = { [P in K]: Handler<P, I, R, A> }

/** The argument of `defineScraper`. */
export interface ScraperDefinition<N extends string, I extends Schema, R extends Routes, AS extends Schema> {
  /** Lower-case words with hyphens: used in the names of folders, metrics and queues. */
  name: N
  description?: string
  /** Disabled until an operator lists it in `boards`; the text says why. */
  optIn?: string
  /** Schema of the arguments that `--arg name=value` may set. */
  args?: AS
  item: I
  /** Identity of an item: dedup, upsert, change detection. Without it, equal records are one item. */
  key?: (keyof Out<I> & string) | ((item: Out<I>) => string)
  routes: R
  start: (context: { args: Out<AS>; enqueue: Enqueue<R>; log: Log }) => Awaitable<unknown>
  /** One handler per route. Handlers hold no state: pages come in any order, in any process, sometimes twice. */
  handlers: Handlers<keyof R, I, R, Out<AS>>
  limits?: Limits
  mode?: 'single' | 'distributed'
  sinks?: readonly SinkSpec<keyof Out<I> & string>[]
  schedule?: Schedule
  /** What a healthy run yields; with less, the run counts as failed. */
  expect?: {
    items?: { min?: number; max?: number }
    filled?: Partial<Record<keyof Out<I> & string, number>>
    perRoute?: { [K in keyof R]?: { items?: [number, number]; links?: [number, number] } }
  }
}

type AnyDefinition = ScraperDefinition<string, Schema, Routes, Schema>
declare const TYPES: unique symbol

/** A checked scraper. It keeps two of its types: the arguments it takes, and the items it emits. */
export interface Scraper<Args = unknown, Item = unknown> extends Omit<AnyDefinition, 'start' | 'handlers' | 'key'> {
  readonly key?: string | ((item: never) => string)
  readonly start: (context: never) => unknown
  readonly handlers: Readonly<Record<string, (context: never) => unknown>>
  /** Only for the compiler. */
  readonly [TYPES]?: { args: Args; item: Item }
}

/** The arguments of a scraper that declares none. */
type NoArgs = Record<string, never>

/** Declares a scraper. Checks what types cannot express: throws E_DEFINITION with every problem. */
export function defineScraper<
  const N extends string,
  I extends Schema,
  const R extends Routes,
  AS extends Schema = Schema<NoArgs, Nothing>,
>(definition: ScraperDefinition<N, I, R, AS>): Scraper<In<AS>, Out<I>> & { readonly name: N } {
  const problems = definitionProblems(definition as unknown as Scraper)
  if (problems.length > 0) {
    throw new ScrapeError('E_DEFINITION', `scraper ${JSON.stringify(definition.name)} is not valid`, {
      notes: problems,
    })
  }
  return Object.freeze({ ...definition }) as unknown as Scraper<In<AS>, Out<I>> & { readonly name: N }
}

export function isScraper(value: unknown): value is Scraper {
  return typeof value === 'object' && value !== null && 'handlers' in value && 'routes' in value && 'item' in value
}

const KNOWN_KEYS = new Set(
  'name description optIn args item key routes start handlers limits mode sinks schedule expect'.split(' '),
)

function definitionProblems(scraper: Scraper): string[] {
  const problems: string[] = []
  if (!/^[a-z0-9][a-z0-9-]{0,63}$/.test(scraper.name ?? ''))
    problems.push('name: use lower-case letters, digits and hyphens, at most 64')
  if (typeof scraper.item?.['~standard'] !== 'object')
    problems.push('item: must be a schema (zod, or any Standard Schema)')
  if (typeof scraper.start !== 'function') problems.push('start: must be a function')
  for (const name of Object.keys(scraper)) if (!KNOWN_KEYS.has(name)) problems.push(`${name}: unknown property`)
  const fields = Object.keys((scraper.item as { shape?: object } | undefined)?.shape ?? {})
  if (typeof scraper.key === 'string' && fields.length > 0 && !fields.includes(scraper.key)) {
    problems.push(`key: the item has no field "${scraper.key}" (it has ${fields.join(', ')})`)
  }
  const routes = Object.keys(scraper.routes ?? {})
  if (routes.length === 0) problems.push('routes: must have at least one route')
  for (const route of routes) {
    if (typeof scraper.handlers?.[route] !== 'function') problems.push(`handlers: route "${route}" has no handler`)
    const match = scraper.routes[route]?.match
    if (match !== undefined && !match.startsWith('/')) problems.push(`routes.${route}.match: must start with "/"`)
    if ((match?.split('*').length ?? 0) > 2) problems.push(`routes.${route}.match: at most one "*"`)
    if (/:\w+:/.test(match ?? '')) problems.push(`routes.${route}.match: two parameters need text between them`)
    if (/^files(?:@|$)/.test(scraper.routes[route]?.lane ?? ''))
      problems.push(`routes.${route}.lane: the lane "files" is reserved for downloads`)
    problems.push(...fetchProblems(route, scraper.routes[route] ?? {}))
    problems.push(...acceptProblems(route, scraper.routes[route]?.accept))
  }
  for (const handler of Object.keys(scraper.handlers ?? {})) {
    if (!routes.includes(handler)) problems.push(`handlers: there is no route "${handler}"`)
  }
  return problems
}

function fetchProblems(name: string, { fetch, browser, fallback, post, data }: RouteDefinition): string[] {
  const problems: string[] = []
  const isBrowser = fetch === 'browser'
  if (browser !== undefined && !isBrowser && fallback === undefined)
    problems.push(`routes.${name}.browser: only for routes with fetch: 'browser' or fallback: 'browser'`)
  if (fallback !== undefined && (fallback !== 'browser' || isBrowser))
    problems.push(`routes.${name}.fallback: 'browser', and only for routes that are fetched without one`)
  if (post === undefined) return problems
  if (isBrowser || fallback !== undefined) problems.push(`routes.${name}.post: a browser opens pages, it does not POST`)
  if (typeof post !== 'string' || post === '') problems.push(`routes.${name}.post: the name of a field of its data`)
  if (data === undefined) problems.push(`routes.${name}.post: a schema in data is needed, with the field "${post}"`)
  return problems
}

const ACCEPT_KEYS = ['status', 'types', 'files', 'empty', 'suspect']

function acceptProblems(name: string, accept: Accept | undefined): string[] {
  if (accept === undefined || Array.isArray(accept)) return []
  const rules = accept as AcceptRules
  const isTypes = (rules.types ?? []).every((type) => /^(?:\*|[^/*\s]+)\/(?:\*|[^/*\s]+)$/.test(type))
  return [
    ...Object.keys(rules)
      .filter((key) => !ACCEPT_KEYS.includes(key))
      .map((key) => `routes.${name}.accept.${key}: unknown rule (${ACCEPT_KEYS.join(', ')})`),
    ...(isTypes ? [] : [`routes.${name}.accept.types: types such as 'application/pdf' or 'image/*'`]),
  ]
}

/** Only Zod objects list their fields; other schemas do not. */
export function schemaFields(schema: object): string[] {
  const { shape } = schema as { shape?: object }
  return shape === undefined ? [] : Object.keys(shape)
}
