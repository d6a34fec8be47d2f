/**
 * Options, declared once: type, default, bounds and description. The type, the check, the environment name, the CLI flag and the
 * docs row come from here.
 */
import * as z from 'zod'

/** `'30s'`, `'500ms'`, `'2m'`, `'1h'`, or a number of milliseconds → milliseconds. */
export function parseDurationMs(text: string | number): number {
  if (typeof text === 'number') return text
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?$/.exec(text.trim())
  if (match === null) return Number.NaN
  const unit = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[match[2] ?? 'ms']!
  return Number(match[1]) * unit
}

/** `'16MiB'`, `'64KB'`, or a number of bytes → bytes. */
export function parseBytes(text: string | number): number {
  if (typeof text === 'number') return text
  const match = /^(\d+(?:\.\d+)?)\s*(B|KB|KiB|MB|MiB|GB|GiB)?$/i.exec(text.trim())
  if (match === null) return Number.NaN
  const unit = { b: 1, kb: 1e3, kib: 1024, mb: 1e6, mib: 1024 ** 2, gb: 1e9, gib: 1024 ** 3 }[
    (match[2] ?? 'B').toLowerCase()
  ]!
  return Math.round(Number(match[1]) * unit)
}

const duration = (bounds: { minMs: number; maxMs: number }) =>
  z
    .union([z.string(), z.number()])
    .transform(parseDurationMs)
    .refine((ms) => ms >= bounds.minMs && ms <= bounds.maxMs, {
      error: `must be a duration such as "30s", "2m" or milliseconds, from ${bounds.minMs} ms to ${bounds.maxMs} ms`,
    })

export type DelayRange = readonly [minMs: number, maxMs: number]

/** `'2s'` → 2000 (a mean, to be varied) · `'1s-3s'` → [1000, 3000] (a range to draw from). NaN for anything else. */
function parseDelayMs(text: string | number | DelayRange): number | DelayRange {
  if (typeof text === 'object') return text[0] <= text[1] ? text : Number.NaN
  const [from, to, ...more] = String(text).split('-')
  if (to === undefined) return parseDurationMs(text)
  // In '1-3s' the unit applies to both numbers.
  const unit = /[a-z]+\s*$/.exec(to)?.[0] ?? ''
  const minMs = parseDurationMs(/[a-z]/.test(from!) ? from! : `${from!.trim()}${unit}`)
  const maxMs = parseDurationMs(to)
  return more.length === 0 && minMs <= maxMs ? [minMs, maxMs] : Number.NaN
}

const DELAY_MS_MAX = 3_600_000

/** The pause between two requests to one host. */
const delay = z
  .union([z.string(), z.number(), z.tuple([z.number(), z.number()]).readonly()])
  .transform(parseDelayMs)
  .refine((value) => [value].flat().every((ms) => ms >= 0 && ms <= DELAY_MS_MAX), {
    error: `must be a duration such as "2s", or a range such as "1s-3s", from 0 ms to ${DELAY_MS_MAX} ms`,
  })

const bytes = (bounds: { min: number; max: number }) =>
  z
    .union([z.string(), z.number()])
    .transform(parseBytes)
    .refine((n) => n >= bounds.min && n <= bounds.max, {
      error: `must be a size such as "16MiB", from ${bounds.min} to ${bounds.max} bytes`,
    })

const ratio = z
  .union([z.number(), z.string()])
  .transform((value) => {
    if (typeof value === 'number') return value
    if (/^\d+(\.\d+)?%$/.test(value)) return Number.parseFloat(value) / 100
    return value.trim() === '' ? Number.NaN : Number(value)
  })
  .refine((n) => n >= 0 && n <= 1, { error: 'must be a percentage such as "5%" or a number from 0 to 1' })

/** Environment variables give numbers as text: `8` or `'8'`, but not `'lots'`. */
type NumberText = number | `${number}`

export const whole = (min: number, max: number) => {
  const said = { error: `must be a whole number from ${min} to ${max}` }
  return z.coerce.number<NumberText>(said).int(said).min(min, said).max(max, said)
}

const shareSaid = { error: 'must be a number from 0 to 1' }
/** A number from 0 to 1. */
export const share = z.coerce.number<NumberText>(shareSaid).min(0, shareSaid).max(1, shareSaid)

const rateSaid = { error: 'must be a number from 0 to 100000' }
const rate = z.coerce.number<NumberText>(rateSaid).min(0, rateSaid).max(100_000, rateSaid)

/** `off`, or how many different pages of a host must fail in a row before its circuit opens. */
const circuit = z.union([z.literal('off'), whole(2, 1000)], {
  error: 'must be "off", or a whole number from 2 to 1000',
})

/** Settings for a single site. */
export const siteSchema = z.strictObject({
  rps: rate.optional(),
  perMinute: whole(0, 1e6).optional(),
  concurrency: whole(1, 4096).optional(),
  delay: delay.optional(),
  circuit: circuit.optional(),
  proxies: z.literal('off', { error: 'must be "off", or omitted' }).optional(),
  identity: z.enum(['honest', 'browser', 'tls']).optional(),
})
export type SiteOptions = z.output<typeof siteSchema>

/** Options that a scraper may set under `limits`, and the CLI and environment may override. */
export const limitsSchema = z.strictObject({
  pages: whole(1, 1e9).optional().describe('stop the run (resumable) after this many pages'),
  depth: whole(0, 10_000).optional().describe('maximum link depth from a start page'),
  time: duration({ minMs: 1, maxMs: 24 * 86_400_000 })
    .optional()
    .describe('stop the run (resumable) after this time'),
  concurrency: whole(1, 4096).default(16).describe('maximum requests in flight, over all processes of the run'),
  perHost: z
    .strictObject({
      concurrency: whole(1, 4096).default(8).describe('maximum requests in flight per host'),
      rps: rate.default(10).describe('maximum requests per second per host; 0 = no limit'),
      perMinute: whole(0, 1e6)
        .default(0)
        .describe(
          'maximum requests per minute per host, over all workers; excess requests wait for the next minute if workers share rate limits through Redis, and are spread evenly otherwise; 0 = no limit',
        ),
      delay: delay
        .default(0)
        .describe('pause between two requests to one host: drawn from a range ("1s-3s"), or one value ±50%'),
      circuit: circuit
        .default(10)
        .describe(
          'circuit breaker: after this many different pages of a host have failed in a row, it is only probed with a few pages at a time; "off" = never',
        ),
      circuitCoolDown: duration({ minMs: 10, maxMs: 3_600_000 })
        .default(5000)
        .describe('how long the circuit breaker pauses a failing host before the first probe, and between probes'),
    })
    .prefault({})
    .describe('limits per host'),
  robots: z.enum(['respect', 'ignore']).default('respect').describe('obey robots.txt, or ignore it'),
  crawlDelayMax: duration({ minMs: 0, maxMs: 3_600_000 })
    .default(10_000)
    .describe('maximum crawl-delay of a robots.txt that is obeyed'),
  retries: whole(0, 100).default(3).describe('retries after the first attempt'),
  backoff: duration({ minMs: 0, maxMs: 3_600_000 })
    .default(500)
    .describe('maximum delay before the first retry; doubles with each retry, with full jitter'),
  backoffMax: duration({ minMs: 0, maxMs: 86_400_000 }).default(60_000).describe('maximum delay before any retry'),
  retryAfterMax: duration({ minMs: 0, maxMs: 86_400_000 })
    .default(3_600_000)
    .describe('maximum Retry-After that is obeyed'),
  wait: z
    .union([
      z.literal([true, 'true', 'forever']).transform(() => Number.POSITIVE_INFINITY),
      duration({ minMs: 0, maxMs: 30 * 86_400_000 }),
    ])
    .default(180_000)
    .describe(
      'stop the run (resumable) when all remaining pages have to wait longer than this (Retry-After, robots.txt, circuit breaker, proxies); `true`: wait forever',
    ),
  timeout: duration({ minMs: 10, maxMs: 3_600_000 })
    .default(30_000)
    .describe('timeout for one page, including redirects'),
  handlerTimeout: duration({ minMs: 10, maxMs: 86_400_000 })
    .default(300_000)
    .describe('maximum time a handler may keep a browser page'),
  connectTimeout: duration({ minMs: 10, maxMs: 3_600_000 }).default(10_000).describe('timeout for connecting'),
  bodyMax: bytes({ min: 1, max: 1024 ** 3 })
    .default(16 * 1024 ** 2)
    .describe('maximum page size, after decompression'),
  redirects: whole(0, 50).default(10).describe('maximum redirects per page'),
  linksMax: whole(1, 1e6).default(10_000).describe('maximum number of tasks that one page may add'),
  failAt: ratio
    .default(0.05)
    .describe('mark the run as failed (exit code 1) if more than this share of pages or items fails'),
  hosts: z
    .union([z.literal('same'), z.literal('any'), z.array(z.string())])
    .default('same')
    .describe('hosts that enqueue.links may follow: those of the start pages, any, or a list'),
  cache: z
    .union([z.literal(true).transform(() => 60_000), duration({ minMs: 0, maxMs: 30 * 86_400_000 })])
    .default(0)
    .describe('serve repeated requests from a cache while entries are younger than this (`true`: 60 s); 0 = off'),
})

/** Options that a scraper may set under `limits`. */
export type Limits = z.input<typeof limitsSchema>
export type ResolvedLimits = z.output<typeof limitsSchema>
