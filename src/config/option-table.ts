/** Every option, declared once: what it may be, its default, its flag, and its sentence. */
import * as z from 'zod'
import { type Limits, parseBytes, parseDurationMs, share, siteSchema, whole } from '../core/options.ts'
import { REGION_NAME } from '../core/run.ts'
import { proxiesSchema } from './proxy-list.ts'

interface OptionSpec {
  schema: z.ZodType
  /** What stands after the flag in the help. */
  value?: string
  /** Flags that may be given several times. */
  isList?: boolean
  /** Where it goes in the scraper's limits, when it is one of them. The scraper's own value is its default. */
  limit?: string
  describe: string
}

const durationMs = (minMs: number, maxMs: number) =>
  z
    .union([z.string(), z.number()])
    .transform(parseDurationMs)
    .refine((ms) => ms >= minMs && ms <= maxMs, {
      error: `must be a duration such as "30s" or milliseconds, from ${minMs} ms to ${maxMs} ms`,
    })
const byteSize = (min: number, max: number) =>
  z
    .union([z.string(), z.number()])
    .transform(parseBytes)
    .refine((bytes) => bytes >= min && bytes <= max, { error: `must be a size such as "512MiB", from ${min} bytes` })
const flag = z.union([z.boolean(), z.stringbool()])
const list = z.union([z.array(z.string()), z.string().transform((text) => text.split(',').filter(Boolean))])

const sitesSchema = z.record(z.string(), siteSchema)
type Sites = z.input<typeof sitesSchema>

/** From a flag or the environment it is JSON. */
function parseIfText(value: Sites | string | undefined): unknown {
  if (typeof value !== 'string') return value
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}

export const OPTIONS = {
  out: { schema: z.string().default('runs'), value: 'DIR', describe: 'base folder of the runs' },
  format: {
    schema: z.string().optional(),
    value: 'LIST',
    describe: 'files to write: jsonl, csv, parquet, or dual (jsonl and csv); default: what the scraper says, else dual',
  },
  sink: { schema: list.default([]), value: 'URL', isList: true, describe: 'one more sink: sqlite:FILE, file:FILE.csv' },
  frontier: {
    schema: z
      .string()
      .regex(/^(?:memory:|sqlite(?::|$)|(?:postgres(?:ql)?|amqps?|rediss?):\/\/.)/i, {
        error: 'must be sqlite:, sqlite:FILE, memory:, postgres://…, redis://… or amqp://…',
      })
      .default('sqlite:'),
    value: 'URL',
    describe:
      'where the queue lives: sqlite: (in the run folder), sqlite:FILE, memory:, postgres://…, redis://…, amqp://…',
  },
  store: {
    schema: z.string().optional(),
    value: 'URL',
    describe:
      'where runs, items and workers of a fleet are kept; default: the frontier when it is postgres://, else sqlite:.sluice/sluice.db',
  },
  redis: {
    schema: z
      .string()
      .regex(/^rediss?:\/\/.+/i, 'must be redis://HOST:PORT/NUMBER')
      .optional(),
    value: 'URL',
    describe: 'the Redis beside an amqp:// queue: its ledger, shared rates, and the cache with --cache-store redis:',
  },
  ack: {
    schema: z
      .string()
      .regex(
        /^(?:auto|manual|[\w@.-]+=(?:auto|manual)(?:,[\w@.-]+=(?:auto|manual))*)$/,
        'must be auto, manual, or one of them for each lane, e.g. bulk=auto,priority=manual',
      )
      .optional(),
    value: 'MODE',
    describe:
      'when messages of an amqp:// queue are acknowledged: manual (the page is stored; default), auto (delivered), or by lane: bulk=auto',
  },
  expired: {
    schema: z.enum(['requeue', 'dead']).optional(),
    value: 'requeue|dead',
    describe:
      'a task whose message expired in an amqp:// queue waits again (requeue; default), or becomes a dead letter',
  },
  processes: { schema: whole(1, 64).default(1), value: 'N', describe: 'worker processes on this machine' },
  concurrency: {
    schema: z.unknown().optional(),
    value: 'N',
    limit: 'concurrency',
    describe: 'requests in flight in all, and to one host unless --per-host says less',
  },
  perHost: {
    schema: z.unknown().optional(),
    value: 'N',
    limit: 'perHost.concurrency',
    describe: 'requests in flight to one host',
  },
  rps: {
    schema: z.unknown().optional(),
    value: 'N',
    limit: 'perHost.rps',
    describe: 'requests a second to one host; 0 = no rate limit',
  },
  perMinute: {
    schema: z.unknown().optional(),
    value: 'N',
    limit: 'perHost.perMinute',
    describe: 'requests a minute to one host; 0 = no such limit',
  },
  delay: {
    schema: z.unknown().optional(),
    value: 'TIME',
    limit: 'perHost.delay',
    describe: 'pause between two requests to one host: 2s (varied by half), or drawn from a range: 1s-3s',
  },
  circuit: {
    schema: z.unknown().optional(),
    value: 'N|off',
    limit: 'perHost.circuit',
    describe: 'circuit breaker: how many different pages of a host must fail in a row to open it; off = never',
  },
  circuitCoolDown: {
    schema: z.unknown().optional(),
    value: 'TIME',
    limit: 'perHost.circuitCoolDown',
    describe: 'how long the circuit breaker pauses a failing host before it probes it, and between rounds of probes',
  },
  wait: {
    schema: z.unknown().optional(),
    value: '[TIME]',
    limit: 'wait',
    describe:
      'stop the run, resumable, when everything left has to wait longer than this (Retry-After, robots.txt, circuit breaker, proxies); default 3m; without a time: wait as long as it takes',
  },
  pages: {
    schema: z.unknown().optional(),
    value: 'N',
    limit: 'pages',
    describe: 'stop, resumable, after this many pages',
  },
  time: { schema: z.unknown().optional(), value: 'TIME', limit: 'time', describe: 'stop, resumable, after this time' },
  depth: { schema: z.unknown().optional(), value: 'N', limit: 'depth', describe: 'follow links at most this far' },
  retries: { schema: z.unknown().optional(), value: 'N', limit: 'retries', describe: 'tries after the first one' },
  timeout: {
    schema: z.unknown().optional(),
    value: 'TIME',
    limit: 'timeout',
    describe: 'deadline of one page, redirects included',
  },
  bodyMax: { schema: z.unknown().optional(), value: 'SIZE', limit: 'bodyMax', describe: 'largest page' },
  cache: {
    schema: z.unknown().optional(),
    value: '[TIME]',
    limit: 'cache',
    describe: 'answer repeated requests from a cache this fresh; 60 s when no time is given',
  },
  cacheStore: {
    schema: z
      .string()
      .regex(
        /^(?:memory:|sqlite:.+|redis:|rediss?:\/\/.+)$/i,
        'must be memory:, sqlite:FILE, redis: or redis://HOST:PORT/NUMBER',
      )
      .default('memory:'),
    value: 'URL',
    describe:
      'where the cache lives: memory:; sqlite:FILE, shared by processes and kept between runs; redis:, shared by a fleet (see redis)',
  },
  robots: { schema: z.unknown().optional(), value: 'respect|ignore', limit: 'robots', describe: 'obey robots.txt' },
  failAt: {
    schema: z.unknown().optional(),
    value: 'SHARE',
    limit: 'failAt',
    describe: 'share of failures above which the run counts as failed',
  },
  metrics: { schema: z.string().optional(), value: 'ADDR', describe: 'serve Prometheus metrics, e.g. :9090' },
  otel: {
    schema: z
      .string()
      .regex(/^(?:on$|https?:\/\/.+)/, 'must be http://HOST:PORT of an OTLP collector, or on')
      .optional(),
    value: 'URL|on',
    describe:
      'send OpenTelemetry traces to this OTLP/HTTP collector, e.g. http://127.0.0.1:4318; on: to where OTEL_EXPORTER_OTLP_ENDPOINT says',
  },
  otelSample: {
    schema: share.default(1),
    value: 'SHARE',
    describe: 'share of traces that are kept, 0 to 1; decided once for each list page',
  },
  contact: {
    schema: z.string().optional(),
    value: 'TEXT',
    describe: 'e-mail or URL put into the user agent, so that site owners can reach you',
  },
  userAgent: {
    schema: z.string().min(1).optional(),
    value: 'TEXT',
    describe: 'user agent in place of the honest default',
  },
  proxy: {
    schema: z
      .string()
      .regex(
        /^(?:socks5h?|http):\/\/\S+$/,
        'must be socks5://HOST:PORT or http://HOST:PORT, with user:password@ before HOST if needed (a space in it is %20)',
      )
      .optional(),
    value: 'URL',
    describe: 'fetch pages through this proxy: socks5://HOST:PORT or http://HOST:PORT, with user:password@ if needed',
  },
  proxies: {
    schema: proxiesSchema.optional(),
    value: 'URL,URL|@FILE',
    describe:
      'fetch pages through these proxies, as long as one works: a list, or @FILE with one a line; better ones, for sites that block the others, after ; or a line of ---',
  },
  identity: {
    schema: z.enum(['honest', 'browser', 'tls']).default('honest'),
    value: 'honest|browser|tls',
    describe:
      'as whom pages are asked for: ourselves, or identities with the headers of a browser each, with cookies and proxy of their own; tls: with its TLS handshake, too (needs the package wreq-js)',
  },
  identityStrategy: {
    schema: z.enum(['round-robin', 'random', 'until-failure']).default('round-robin'),
    value: 'NAME',
    describe: 'which identity is next: round-robin, random, or until-failure (the same one for a site until it fails)',
  },
  sites: {
    schema: z.preprocess(parseIfText, sitesSchema).default({}),
    value: 'JSON',
    describe:
      'settings for single sites, by host or *.host: rps, perMinute, concurrency, delay, circuit, proxies (off), identity; e.g. {"*.example.com": {"delay": "2s-6s"}}',
  },
  browsers: {
    schema: whole(1, 256).optional(),
    value: 'N',
    describe: 'pages open at once in browsers; default: twice the processor cores',
  },
  chrome: {
    schema: z.string().optional(),
    value: 'FILE',
    describe: 'the Chromium to use; default: chromium-headless-shell, chromium or google-chrome of this machine',
  },
  files: {
    schema: z
      .string()
      .regex(/^(?:s3:\/\/.+|file:.+|[^:]+)$/, 'must be a folder, file:FOLDER or s3://BUCKET/PREFIX')
      .optional(),
    value: 'URL',
    describe:
      'where downloaded files go: a folder, or s3://BUCKET/PREFIX?endpoint=…; default: files/ in the run folder',
  },
  fileWorkers: {
    schema: whole(1, 64).optional(),
    value: 'N',
    describe: 'most processes that download files; default: the processor cores, at least 2 and at most 8',
  },
  fileMax: {
    schema: byteSize(1, 1024 ** 4).default(1024 ** 3),
    value: 'SIZE',
    describe: 'largest file; 1 GiB unless told',
  },
  fileSteps: {
    schema: list
      .refine((names) => names.every((name) => ['pdf-text', 'thumbnail'].includes(name)), {
        error: 'must be pdf-text, thumbnail, or both',
      })
      .default([]),
    value: 'NAMES',
    describe: 'further looks at stored files: pdf-text (needs the package unpdf), thumbnail (needs sharp)',
  },
  memoryReserve: {
    schema: byteSize(0, 1024 ** 4).default(512 * 1024 ** 2),
    value: 'SIZE',
    describe: 'memory that stays free, 512 MiB unless told: below it no browser page and no file worker is added',
  },
  region: {
    schema: z.string().regex(REGION_NAME.pattern, REGION_NAME.rule).optional(),
    value: 'NAME',
    describe:
      'of a run: only workers of this region take it; of a worker: takes runs of this region, and those that name none',
  },
  boards: {
    schema: list.default([]),
    value: 'NAME',
    isList: true,
    describe: 'scrapers that are off by default and that you turn on, knowing what their sites say about it',
  },
  allowPrivate: { schema: flag.default(false), describe: 'fetch addresses of the private network' },
  allowAddress: {
    schema: list.default([]),
    value: 'HOST:PORT',
    isList: true,
    describe: 'fetch exactly this private address',
  },
  lease: {
    schema: durationMs(100, 86_400_000).default(30_000),
    value: 'TIME',
    describe: 'how long a silent worker keeps its tasks',
  },
  outage: {
    schema: durationMs(0, 86_400_000).default(600_000),
    value: 'TIME',
    describe: 'how long a run or worker waits for its queue when that goes away',
  },
  drainTimeout: {
    schema: durationMs(0, 3_600_000).default(30_000),
    value: 'TIME',
    describe: 'how long a stop waits for pages in flight',
  },
  logLevel: {
    schema: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
    value: 'LEVEL',
    describe: 'what goes into log.jsonl',
  },
  formulaSafe: {
    schema: flag.default(false),
    describe: 'make CSV cells that a spreadsheet would run as formulas harmless',
  },
} as const satisfies Record<string, OptionSpec>

export type OptionName = keyof typeof OPTIONS
export const optionSpecs = Object.entries(OPTIONS) as [OptionName, OptionSpec][]

export type ConfigValues = { [K in OptionName]: z.output<(typeof OPTIONS)[K]['schema']> }

type LimitAt<P> = P extends `perHost.${infer K extends keyof PerHost}`
  ? PerHost[K]
  : P extends keyof Limits
    ? Limits[P]
    : never
type PerHost = NonNullable<Limits['perHost']>
type InputOf<S extends OptionSpec> = S extends { limit: infer P } ? LimitAt<P> : z.input<S['schema']>

/** Every option, as a program or `sluice.config.ts` may give it: numbers as numbers, and all that a flag may say. */
export type OptionInputs = { [K in OptionName]?: InputOf<(typeof OPTIONS)[K]> }

export function envName(option: string): string {
  return `SLUICE_${option.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`
}

export function flagName(option: string): string {
  return `--${option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}
