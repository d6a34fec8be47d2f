import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { limitsSchema, parseBytes, parseDurationMs } from './options.ts'

/** The paths of invalid options, as a user would write them. */
function problems(limits: unknown): string[] {
  const result = limitsSchema.safeParse(limits)
  return result.success ? [] : result.error.issues.map(({ path }) => path.join('.'))
}

describe('parseDurationMs', () => {
  it('reads every unit, fractions, and spaces', () => {
    const texts = ['500ms', '30s', '2m', '1h', '1d', '1.5s', '0s', ' 2 m ', '250']
    assert.deepEqual(texts.map(parseDurationMs), [500, 30_000, 120_000, 3_600_000, 86_400_000, 1500, 0, 120_000, 250])
  })

  it('reads a number as milliseconds', () => {
    assert.equal(parseDurationMs(1500), 1500)
  })

  it('returns NaN for an invalid duration', () => {
    for (const text of ['', 's', '-5s', '5 years', '1m30s', '1e3', '.5s', '5S', '∞'])
      assert.equal(parseDurationMs(text), Number.NaN, text)
  })
})

describe('parseBytes', () => {
  it('reads decimal and binary units in any case', () => {
    const texts = ['10', '10B', '64KB', '64KiB', '1mb', '16MiB', '1GB', '1gib', '1.5 KiB']
    assert.deepEqual(
      texts.map(parseBytes),
      [10, 10, 64_000, 65_536, 1_000_000, 16_777_216, 1_000_000_000, 1_073_741_824, 1536],
    )
  })

  it('reads a number as bytes and rounds fractions', () => {
    assert.equal(parseBytes(4096), 4096)
    assert.equal(parseBytes('0.0004KB'), 0)
  })

  it('returns NaN for an invalid size', () => {
    for (const text of ['', 'MiB', '-1KB', '1TB', '1 2', '16M']) assert.equal(parseBytes(text), Number.NaN, text)
  })
})

describe('limitsSchema', () => {
  it('is polite and bounded when nothing is set', () => {
    const limits = limitsSchema.parse({})
    assert.equal(limits.robots, 'respect')
    assert.equal(limits.hosts, 'same')
    assert.deepEqual(limits.perHost, {
      concurrency: 8,
      rps: 10,
      perMinute: 0,
      delay: 0,
      circuit: 10,
      circuitCoolDown: 5000,
    })
    assert.equal(limits.cache, 0)
    assert.equal(limits.failAt, 0.05)
    const bounds = [
      'concurrency',
      'retries',
      'backoffMax',
      'retryAfterMax',
      'timeout',
      'connectTimeout',
      'bodyMax',
      'redirects',
      'linksMax',
      'crawlDelayMax',
    ] as const
    for (const name of bounds) assert.ok(limits[name] > 0 && limits[name] <= 1e9, `${name}: ${limits[name]}`)
    assert.ok(limits.perHost.concurrency <= limits.concurrency)
    assert.ok(limits.connectTimeout <= limits.timeout)
    assert.deepEqual([limits.pages, limits.depth, limits.time], [undefined, undefined, undefined])
  })

  it('keeps the other politeness defaults when one of them is set', () => {
    assert.deepEqual(limitsSchema.parse({ perHost: { rps: 2 } }).perHost, {
      concurrency: 8,
      rps: 2,
      perMinute: 0,
      delay: 0,
      circuit: 10,
      circuitCoolDown: 5000,
    })
  })

  it('reads durations and sizes as text or number', () => {
    const { timeout, time, bodyMax, perHost } = limitsSchema.parse({
      timeout: '5s',
      time: 1000,
      bodyMax: '1MiB',
      perHost: { delay: '250ms' },
    })
    assert.deepEqual([timeout, time, bodyMax, perHost.delay], [5000, 1000, 1_048_576, 250])
  })

  it('reads whole numbers from the text of a flag or variable', () => {
    const limits = limitsSchema.parse({ pages: '50', depth: '0', perHost: { rps: '0.5' } })
    assert.deepEqual([limits.pages, limits.depth, limits.perHost.rps], [50, 0, 0.5])
  })

  it('accepts failAt as a percentage or as a share', () => {
    const shares = ['5%', '0%', '100%', '0.5%', 0, 0.05, 1].map((failAt) => limitsSchema.parse({ failAt }).failAt)
    assert.deepEqual(shares, [0.05, 0, 1, 0.005, 0, 0.05, 1])
  })

  it('rejects a failAt that is not a share', () => {
    for (const failAt of ['101%', '-1%', '5 %', '%', 'five', -0.1, 1.01, Number.NaN, null, true])
      assert.deepEqual(problems({ failAt }), ['failAt'], String(failAt))
  })

  it('accepts cache as true, a duration, or 0', () => {
    const freshMs = [true, '5m', 0].map((cache) => limitsSchema.parse({ cache }).cache)
    assert.deepEqual(freshMs, [60_000, 300_000, 0])
    assert.deepEqual(problems({ cache: false }), ['cache'])
    assert.deepEqual(problems({ cache: 'yes' }), ['cache'])
  })

  it('accepts hosts as same, any, or a list', () => {
    for (const hosts of ['same', 'any', ['a.test', 'b.test:81'], []])
      assert.deepEqual(limitsSchema.parse({ hosts }).hosts, hosts)
    assert.deepEqual(problems({ hosts: 'others' }), ['hosts'])
    assert.deepEqual(problems({ hosts: [1] }), ['hosts'])
  })

  it('rejects values that are out of bounds or of the wrong type', () => {
    const bad: object[] = [
      { pages: 0 },
      { pages: 1.5 },
      { pages: 'many' },
      { depth: -1 },
      { concurrency: 0 },
      { concurrency: 5000 },
      { retries: 101 },
      { retries: Number.NaN },
      { timeout: '9ms' },
      { timeout: '2h' },
      { timeout: 'soon' },
      { timeout: Number.POSITIVE_INFINITY },
      { time: '31d' },
      { bodyMax: 0 },
      { bodyMax: '2GiB' },
      { redirects: 51 },
      { linksMax: 0 },
      { robots: 'obey' },
      { backoff: -1 },
      { perHost: 5 },
    ]
    for (const limits of bad) assert.deepEqual(problems(limits), Object.keys(limits), JSON.stringify(limits))
    assert.deepEqual(problems({ perHost: { rps: -1, concurrency: 0, delay: 'x' } }).toSorted(), [
      'perHost.concurrency',
      'perHost.delay',
      'perHost.rps',
    ])
  })

  it('reports all problems at once', () => {
    assert.deepEqual(problems({ pages: 0, timeout: 'soon', robots: 'no' }).toSorted(), ['pages', 'robots', 'timeout'])
  })

  it('rejects unknown names, even inside perHost', () => {
    const unknown = limitsSchema.safeParse({ retrys: 3 })
    assert.equal(unknown.success, false)
    assert.match(unknown.error!.issues[0]!.message, /retrys/)
    assert.deepEqual(problems({ perHost: { rsp: 3 } }), ['perHost'])
  })

  it('states the bounds of a duration and of a size in its message', () => {
    const message = (limits: object) => limitsSchema.safeParse(limits).error!.issues[0]!.message
    assert.match(message({ timeout: 'soon' }), /"30s".*10 ms.*3600000 ms/)
    assert.match(message({ bodyMax: 'big' }), /"16MiB".*1073741824 bytes/)
  })

  it('describes every option', () => {
    for (const [name, option] of Object.entries(limitsSchema.shape)) assert.ok(option.description, name)
  })
})

describe('a pause between requests', () => {
  const delayOf = (delay: unknown) => limitsSchema.safeParse({ perHost: { delay } })

  it('is one time, or a range of times', () => {
    for (const [given, expected] of [
      ['2s', 2000],
      [250, 250],
      ['1s-3s', [1000, 3000]],
      ['1-3s', [1000, 3000]],
      ['500ms - 2s', [500, 2000]],
      [
        [10, 20],
        [10, 20],
      ],
    ])
      assert.deepEqual(delayOf(given).data?.perHost.delay, expected)
  })

  it('is rejected when it is neither', () => {
    for (const given of ['3s-1s', '1s-2s-3s', '-', '1s-', 'soon', '-1s', '1s-2d'])
      assert.match(delayOf(given).error?.issues[0]?.message ?? `${given} was taken`, /range such as "1s-3s"/)
  })
})
