/** Every option, declared once: schema, default, flag and description. */
import * as z from 'zod'
import { type Limits, parseBytes, parseDurationMs, share, siteSchema, whole } from '../core/options.ts'
import { REGION_NAME } from '../core/run.ts'
import { proxiesSchema } from './proxy-list.ts'

interface OptionSpec {
  schema: z.ZodType
  /** Placeholder after the flag in the help. */
  value?: string
  /** The flag may be repeated. */
  isList?: boolean
  /** Path in the scraper's limits, if it is one of them. The scraper's own value is then the default. */
  limit?: string
  describe: string
  /** The default in words, if the schema has none. */
  fallback?: string
  /** Rarely needed: listed under its own heading in the help. */
  isAdvanced?: boolean
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
    .refine((bytes) => bytes >= min && bytes <= max, {
      error: `must be a size such as "512MiB", from ${min} to ${max} bytes`,
    })
const flag = z.union([z.boolean(), z.stringbool()])
const list = z.union([z.array(z.string()), z.string().transform((text) => text.split(',').filter(Boolean))])

const sitesSchema = z.record(z.string(), siteSchema)
type Sites = z.input<typeof sitesSchema>

/** A flag or the environment contains JSON. */
function parseIfText(value: Sites | string | undefined): unknown {
  if (typeof value !== 'string') return value
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}

export const OPTIONS = {
  out: { schema: z.string().default('runs'), value: 'DIR', describe: 'base folder for runs' },
  format: {
    schema: z.string().optional(),
    value: 'LIST',
    describe: 'output files: jsonl, csv, parquet, or dual (jsonl and csv)',
    fallback: 'what the scraper says, else dual',
  },
  sink: {
    schema: list.default([]),
    value: 'URL',
    isList: true,
    describe: 'an additional sink: sqlite:FILE, file:FILE.csv',
  },
  frontier: {
    schema: z
      .string()
      .regex(/^(?:memory:|sqlite(?::|$)|(?:postgres(?:ql)?|amqps?|rediss?):\/\/.)/i, {
        error: 'must be sqlite:, sqlite:FILE, memory:, postgres://…, redis://… or amqp://…',
      })
      .default('sqlite:'),
    value: 'URL',
    describe: 'the queue: sqlite: (in the run folder), sqlite:FILE, memory:, postgres://…, redis://…, amqp://…',
  },
  store: {
    schema: z.string().optional(),
    value: 'URL',
    describe: 'the database for runs, items and workers of a fleet',
    fallback: 'the frontier if it is postgres://, else sqlite:.sluice/sluice.db',
    isAdvanced: true,
  },
  redis: {
    schema: z
      .string()
      .regex(/^rediss?:\/\/.+/i, 'must be redis://HOST:PORT/NUMBER')
      .optional(),
    value: 'URL',
    describe:
      'the Redis next to an amqp:// queue: task ledger, shared rate limits, and the cache with --cache-store redis:',
    fallback: 'none',
    isAdvanced: true,
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
      'when messages of an amqp:// queue are acknowledged: manual (once the page is stored), auto (on delivery), or per lane: bulk=auto',
    fallback: 'manual',
    isAdvanced: true,
  },
  expired: {
    schema: z.enum(['requeue', 'dead']).optional(),
    value: 'requeue|dead',
    describe: 'what happens to a task whose message expired in an amqp:// queue: requeue it, or make it a dead letter',
    fallback: 'requeue',
    isAdvanced: true,
  },
  processes: { schema: whole(1, 64).default(1), value: 'N', describe: 'worker processes on this machine' },
  concurrency: {
    schema: z.unknown().optional(),
    value: 'N',
    limit: 'concurrency',
    describe: 'maximum requests in flight; also per host, unless --per-host is lower',
  },
  perHost: {
    schema: z.unknown().optional(),
    value: 'N',
    limit: 'perHost.concurrency',
    describe: 'maximum requests in flight per host',
  },
  rps: {
    schema: z.unknown().optional(),
    value: 'N',
    limit: 'perHost.rps',
    describe: 'maximum requests per second per host; 0 = no limit',
  },
  perMinute: {
    schema: z.unknown().optional(),
    value: 'N',
    limit: 'perHost.perMinute',
    describe: 'maximum requests per minute per host; 0 = no limit',
    isAdvanced: true,
  },
  delay: {
    schema: z.unknown().optional(),
    value: 'TIME',
    limit: 'perHost.delay',
    describe: 'pause between two requests to one host: 2s (randomised by ±50%), or a range to draw from: 1s-3s',
  },
  circuit: {
    schema: z.unknown().optional(),
    value: 'N|off',
    limit: 'perHost.circuit',
    describe: 'circuit breaker: opens for a host after this many different pages have failed in a row; off = never',
    isAdvanced: true,
  },
  circuitCoolDown: {
    schema: z.unknown().optional(),
    value: 'TIME',
    limit: 'perHost.circuitCoolDown',
    describe: 'how long the circuit breaker pauses a failing host before the first probe, and between probes',
    isAdvanced: true,
  },
  wait: {
    schema: z.unknown().optional(),
    value: '[TIME]',
    limit: 'wait',
    describe:
      'stop the run (resumable) when all remaining pages have to wait longer than this (Retry-After, robots.txt, circuit breaker, proxies); without a value: wait forever',
    isAdvanced: true,
  },
  pages: {
    schema: z.unknown().optional(),
    value: 'N',
    limit: 'pages',
    describe: 'stop the run (resumable) after this many pages',
    fallback: 'no limit',
  },
  time: {
    schema: z.unknown().optional(),
    value: 'TIME',
    limit: 'time',
    describe: 'stop the run (resumable) after this time',
    fallback: 'no limit',
  },
  depth: {
    schema: z.unknown().optional(),
    value: 'N',
    limit: 'depth',
    describe: 'maximum link depth from a start page',
    fallback: 'no limit',
  },
  retries: {
    schema: z.unknown().optional(),
    value: 'N',
    limit: 'retries',
    describe: 'retries after the first attempt',
  },
  timeout: {
    schema: z.unknown().optional(),
    value: 'TIME',
    limit: 'timeout',
    describe: 'timeout for one page, including redirects',
  },
  bodyMax: {
    schema: z.unknown().optional(),
    value: 'SIZE',
    limit: 'bodyMax',
    describe: 'maximum page size, after decompression',
    isAdvanced: true,
  },
  cache: {
    schema: z.unknown().optional(),
    value: '[TIME]',
    limit: 'cache',
    describe: 'serve repeated requests from a cache while entries are younger than this; without a value: 60s; 0 = off',
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
      'the cache: memory:; sqlite:FILE (shared by processes, kept between runs); redis: (shared by a fleet, see --redis)',
    isAdvanced: true,
  },
  robots: {
    schema: z.unknown().optional(),
    value: 'respect|ignore',
    limit: 'robots',
    describe: 'obey robots.txt, or ignore it',
  },
  failAt: {
    schema: z.unknown().optional(),
    value: 'SHARE',
    limit: 'failAt',
    describe: 'mark the run as failed (exit code 1) if more than this share of pages or items fails',
  },
  metrics: {
    schema: z.string().optional(),
    value: 'ADDR',
    describe: 'serve Prometheus metrics on this address, e.g. :9090',
    fallback: 'off',
  },
  otel: {
    schema: z
      .string()
      .regex(/^(?:on$|https?:\/\/.+)/, 'must be http://HOST:PORT of an OTLP collector, or on')
      .optional(),
    value: 'URL|on',
    describe:
      'send OpenTelemetry traces to this OTLP/HTTP collector, e.g. http://127.0.0.1:4318; on: use OTEL_EXPORTER_OTLP_ENDPOINT',
    fallback: 'off',
    isAdvanced: true,
  },
  otelSample: {
    schema: share.default(1),
    value: 'SHARE',
    describe: 'share of traces to keep; decided once per list page',
    isAdvanced: true,
  },
  contact: {
    schema: z.string().optional(),
    value: 'TEXT',
    describe: 'e-mail or URL for the user agent, so that site owners can reach you',
    fallback: 'none',
  },
  userAgent: {
    schema: z.string().min(1).optional(),
    value: 'TEXT',
    describe: 'custom user agent',
    fallback: 'Sluice/VERSION, with --contact',
    isAdvanced: true,
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
    fallback: 'none',
  },
  proxies: {
    schema: proxiesSchema.optional(),
    value: 'URL,URL|@FILE',
    describe:
      'fetch pages through these proxies: a list, or @FILE with one per line; after ; (or a line ---) the next tier, for sites that block the first',
    fallback: 'none',
  },
  identity: {
    schema: z.enum(['honest', 'browser', 'tls']).default('honest'),
    value: 'honest|browser|tls',
    describe:
      'client identity: honest (Sluice user agent), browser (rotating browser headers, each with its own cookies and proxy), tls (also mimics the TLS handshake of the browser; needs the package wreq-js)',
  },
  identityStrategy: {
    schema: z.enum(['round-robin', 'random', 'until-failure']).default('round-robin'),
    value: 'NAME',
    describe:
      'how the next identity is chosen: round-robin, random, or until-failure (keep one per site until it fails)',
    isAdvanced: true,
  },
  sites: {
    schema: z.preprocess(parseIfText, sitesSchema).default({}),
    value: 'JSON',
    describe:
      'per-site overrides, by host or *.host: rps, perMinute, concurrency, delay, circuit, proxies (off), identity; e.g. {"*.example.com": {"delay": "2s-6s"}}',
    isAdvanced: true,
  },
  browsers: {
    schema: whole(1, 256).optional(),
    value: 'N',
    describe: 'maximum browser pages open at once',
    fallback: 'twice the number of CPU cores',
    isAdvanced: true,
  },
  chrome: {
    schema: z.string().optional(),
    value: 'FILE',
    describe: 'path of the Chromium to use',
    fallback: 'chromium-headless-shell, chromium or google-chrome on this machine',
    isAdvanced: true,
  },
  files: {
    schema: z
      .string()
      .regex(/^(?:s3:\/\/.+|file:.+|[^:]+)$/, 'must be a folder, file:FOLDER or s3://BUCKET/PREFIX')
      .optional(),
    value: 'URL',
    describe: 'where downloaded files go: a folder, or s3://BUCKET/PREFIX?endpoint=…',
    fallback: 'files/ in the run folder',
  },
  fileWorkers: {
    schema: whole(1, 64).optional(),
    value: 'N',
    describe: 'maximum processes that download files',
    fallback: 'the number of CPU cores, at least 2 and at most 8',
    isAdvanced: true,
  },
  fileMax: {
    schema: byteSize(1, 1024 ** 4).default(1024 ** 3),
    value: 'SIZE',
    describe: 'maximum file size',
    isAdvanced: true,
  },
  fileSteps: {
    schema: list
      .refine((names) => names.every((name) => ['pdf-text', 'thumbnail'].includes(name)), {
        error: 'must be pdf-text, thumbnail, or both',
      })
      .default([]),
    value: 'NAMES',
    describe: 'post-processing for stored files: pdf-text (needs the package unpdf), thumbnail (needs sharp)',
    isAdvanced: true,
  },
  memoryReserve: {
    schema: byteSize(0, 1024 ** 4).default(512 * 1024 ** 2),
    value: 'SIZE',
    describe: 'memory to keep free: below this, no browser page or file worker is added',
    isAdvanced: true,
  },
  region: {
    schema: z.string().regex(REGION_NAME.pattern, REGION_NAME.rule).optional(),
    value: 'NAME',
    describe:
      'for a run: only workers in this region may take it; for a worker: take runs of this region, and runs without one',
    fallback: 'none',
    isAdvanced: true,
  },
  boards: {
    schema: list.default([]),
    value: 'NAME',
    isList: true,
    describe: 'enable opt-in scrapers (their sites discourage automated access)',
    isAdvanced: true,
  },
  allowPrivate: { schema: flag.default(false), describe: 'allow fetching private network addresses' },
  allowAddress: {
    schema: list.default([]),
    value: 'HOST:PORT',
    isList: true,
    describe: 'allow fetching this private address',
  },
  lease: {
    schema: durationMs(100, 86_400_000).default(30_000),
    value: 'TIME',
    describe: 'lease duration: an unresponsive worker loses its tasks after this',
    isAdvanced: true,
  },
  outage: {
    schema: durationMs(0, 86_400_000).default(600_000),
    value: 'TIME',
    describe: 'how long a run or worker waits for an unreachable queue',
    isAdvanced: true,
  },
  drainTimeout: {
    schema: durationMs(0, 3_600_000).default(30_000),
    value: 'TIME',
    describe: 'how long to wait for pages in flight when stopping',
    isAdvanced: true,
  },
  logLevel: {
    schema: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
    value: 'LEVEL',
    describe: 'minimum level for log.jsonl',
    isAdvanced: true,
  },
  formulaSafe: {
    schema: flag.default(false),
    describe: 'escape CSV cells that a spreadsheet would run as formulas',
    isAdvanced: true,
  },
} as const satisfies Record<string, OptionSpec>

export type OptionName = keyof typeof OPTIONS
export const specOf = (name: OptionName): OptionSpec => OPTIONS[name]
export const optionSpecs = Object.entries(OPTIONS) as [OptionName, OptionSpec][]

export type ConfigValues = { [K in OptionName]: z.output<(typeof OPTIONS)[K]['schema']> }

type LimitAt<P> = P extends `perHost.${infer K extends keyof PerHost}`
  ? PerHost[K]
  : P extends keyof Limits
    ? Limits[P]
    : never
type PerHost = NonNullable<Limits['perHost']>
type InputOf<S extends OptionSpec> = S extends { limit: infer P } ? LimitAt<P> : z.input<S['schema']>

/** Every option, as a program or `sluice.config.ts` may set it: numbers as numbers, and everything that a flag accepts. */
export type OptionInputs = { [K in OptionName]?: InputOf<(typeof OPTIONS)[K]> }

export function envName(option: string): string {
  return `SLUICE_${option.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`
}

export function flagName(option: string): string {
  return `--${option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}
