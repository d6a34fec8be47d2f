import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import type { Clock } from '../core/clock.ts'
import { type Progress, type ProgressOptions, startProgress } from './progress.ts'
import type { ProgressStats } from './progress-lines.ts'
import { createTally } from './tally.ts'
import { displayWidth } from './terminal.ts'

process.env['TZ'] = 'UTC'
const START_MS = Date.UTC(2026, 10, 15, 7, 30, 0)

/** A clock that the test advances; sleepers wake in order. */
function fakeClock(): Clock & { advance(ms: number): Promise<void> } {
  let nowMs = START_MS
  const sleepers = new Set<{ atMs: number; wake: () => void }>()
  return {
    now: () => nowMs,
    sleep(ms, signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason)
        const sleeper = { atMs: nowMs + ms, wake: resolve }
        sleepers.add(sleeper)
        signal?.addEventListener('abort', () => {
          sleepers.delete(sleeper)
          reject(signal.reason)
        })
      })
    },
    async advance(ms) {
      const endMs = nowMs + ms
      for (;;) {
        await settled()
        const next = [...sleepers].filter((s) => s.atMs <= endMs).sort((a, b) => a.atMs - b.atMs)[0]
        if (next === undefined) break
        sleepers.delete(next)
        nowMs = next.atMs
        next.wake()
      }
      nowMs = endMs
      await settled()
    },
  }
}

/** Lets the continuations of fulfilled promises run. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

/** A terminal as far as we use one: text, newlines, carriage return, cursor up, erase line end, erase below. */
class Screen {
  readonly isTTY: boolean
  columns: number
  writes: string[] = []
  lines: string[] = ['']
  row = 0
  column = 0
  isCursorShown = true

  constructor(options: { isTTY?: boolean; columns?: number } = {}) {
    this.isTTY = options.isTTY ?? true
    this.columns = options.columns ?? 120
  }

  write(text: string): void {
    this.writes.push(text)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal speaks in them
    for (const [token] of text.matchAll(/\x1b\[\?25[lh]|\x1b\[\d*[AKJm]|\x1b\[[\d;]*m|[\s\S]/gu)) this.take(token)
  }

  private take(token: string): void {
    const line = this.lines[this.row] ?? ''
    if (token === '\x1b[?25l') this.isCursorShown = false
    else if (token === '\x1b[?25h') this.isCursorShown = true
    else if (token === '\n') {
      this.row += 1
      this.column = 0
      this.lines[this.row] ??= ''
    } else if (token === '\r') this.column = 0
    else if (token.endsWith('A') && token.length > 1) this.row = Math.max(0, this.row - Number(token.slice(2, -1)))
    else if (token === '\x1b[K') this.lines[this.row] = line.slice(0, this.column)
    else if (token === '\x1b[J') {
      this.lines[this.row] = line.slice(0, this.column)
      this.lines.length = this.row + 1
    } else if (!token.startsWith('\x1b')) {
      this.lines[this.row] = line.slice(0, this.column).padEnd(this.column) + token + line.slice(this.column + 1)
      this.column += 1
    }
  }

  get text(): string {
    return this.lines.join('\n').trimEnd()
  }
}

const baseStats: ProgressStats = {
  pending: 1026,
  claimed: 8,
  completed: 1284,
  failed: 3,
  remaining: 1034,
  seen: 2321,
  items: 1201,
  isPaused: false,
  pauseReason: undefined,
  lanes: { bulk: { pending: 1026, claimed: 8 } },
}

let running: Progress | undefined
afterEach(() => running?.stop())

function begin(over: Partial<ProgressOptions> & { stats?: () => Promise<ProgressStats>; screen?: Screen } = {}) {
  const clock = fakeClock()
  const tally = createTally({ now: clock.now })
  const screen = over.screen ?? new Screen()
  const { screen: _, ...options } = over
  const progress = startProgress({
    name: 'books',
    tally,
    stats: async () => baseStats,
    stream: screen,
    clock,
    env: { NO_COLOR: '1' },
    ...options,
  })
  running = progress
  return { clock, tally, screen, progress }
}

function feed(tally: ReturnType<typeof createTally>, pages: number, added: number): void {
  for (let i = 0; i < pages; i++) {
    tally.record({
      type: 'page',
      outcome: 'ok',
      url: 'https://shop.example/',
      host: 'shop.example',
      route: 'book',
      attempt: 1,
      fetchMs: 182,
      bytes: 75_000,
    })
  }
  tally.record({
    type: 'committed',
    outcomes: pages,
    added,
    itemsNew: 0,
    itemsSame: 0,
    itemsChanged: 0,
    backlog: 0,
    ms: 1,
  })
}

test('shows done, queued, in flight, failed, speed and a lower bound for the end while links are found', async () => {
  const { clock, tally, screen } = begin()
  await clock.advance(0)
  for (let second = 0; second < 31; second++) {
    feed(tally, 41, 10)
    tally.record({ type: 'worker.in-flight', workerId: 'a', inFlight: 8, rssBytes: 118e6, cpuMs: second * 640 })
    await clock.advance(1000)
  }
  tally.record({
    type: 'throttled',
    host: 'shop.example',
    untilMs: clock.now() + 49_000,
    reason: '429: slowed to 2 req/s',
  })
  await clock.advance(200)
  const lines = screen.text.split('\n')
  assert.equal(lines.length, 3)
  assert.match(lines[0]!, /^books ▕█+\S? *▏ 1,284 done · 1,026 queued · 8 in flight · 3 failed · 1,201 items$/)
  assert.match(
    lines[1]!,
    /^ {6}\d\d pages\/s · ETA ≥ 0:2\d · p95 1[78]\d ms · [23](\.\d)? MB\/s · RSS 118 MB · CPU 64 % · 0:31$/,
  )
  assert.equal(lines[2], '      ! 429 from shop.example: slowed to 2 req/s until 07:31:20')
})

test('separates files from pages: they have their own line and do not count as queued, in flight or for the ETA', async () => {
  const stats: ProgressStats = {
    ...baseStats,
    pending: 1030,
    claimed: 10,
    completed: 1284 + 24,
    failed: 4,
    remaining: 1040,
    lanes: {
      bulk: { pending: 1026, claimed: 8 },
      files: { pending: 3, claimed: 2 },
      'files@spool-1': { pending: 1, claimed: 0 },
    },
  }
  const { clock, tally, screen, progress } = begin({ stats: async () => stats })
  const file = { type: 'file', url: 'https://shop.example/a.pdf', host: 'shop.example', attempt: 1, ms: 9 } as const
  for (let i = 0; i < 12; i++) {
    tally.record({ ...file, outcome: 'stored', order: 'download', bytes: 3e6 })
    tally.record({ ...file, outcome: 'recorded', order: 'db_update' })
  }
  tally.record({ ...file, outcome: 'failed', order: 'download' })
  feed(tally, 400, 0)
  await clock.advance(1000)
  const lines = screen.text.split('\n')
  assert.match(lines[0]!, /1,284 done · 1,026 queued · 8 in flight · 3 failed/)
  assert.match(lines[1]!, /ETA 0:0[23] · .* MB\/s/)
  assert.equal(lines[2], '      12 files stored · 2 under way · 4 waiting · 36 MB · 1 file failed')
  await progress.stop()
})

test('includes files that are only waiting in a plain line', async () => {
  const stats = { ...baseStats, completed: 5, remaining: 2, claimed: 1, lanes: { files: { pending: 1, claimed: 1 } } }
  const { clock, screen } = begin({ stats: async () => stats, screen: new Screen({ isTTY: false }) })
  await clock.advance(10_000)
  assert.match(
    screen.text,
    /5 done · 0 queued · 0 in flight .* · 0 files stored · 1 under way · 1 waiting · 0 B · .*ETA –/,
  )
})

test('shows a plain ETA once no link was found for a while', async () => {
  const { clock, tally, screen } = begin()
  feed(tally, 400, 0)
  await clock.advance(1000)
  assert.match(screen.text, /ETA 0:0\d/)
})

test('counts towards the page limit, not towards everything queued', async () => {
  const { clock, tally, screen } = begin({ pagesMax: 1387 })
  feed(tally, 100, 50)
  await clock.advance(1000)
  assert.match(screen.text, /ETA 0:01/)
})

test('redraws at most five times a second', async () => {
  const { clock, screen } = begin()
  await clock.advance(0)
  const before = screen.writes.length
  await clock.advance(10_000)
  assert.ok(screen.writes.length - before <= 50, String(screen.writes.length - before))
})

test('writes a frame in one piece', async () => {
  const { clock, screen } = begin()
  await clock.advance(0)
  assert.equal(screen.writes.filter((text) => text.includes('done')).length, 1)
})

test('stays within the width of the terminal, however narrow', async () => {
  for (const columns of [20, 40, 80, 100, 200]) {
    const { clock, tally, screen, progress } = begin({ screen: new Screen({ columns }), env: {} })
    feed(tally, 50, 3)
    tally.record({ type: 'throttled', host: `${'very-'.repeat(30)}long.example`, untilMs: 9e12, reason: '429' })
    await clock.advance(1000)
    for (const line of screen.lines) assert.ok(displayWidth(line) < columns, `${columns}: ${line}`)
    await progress.stop()
  }
})

test('never shows half a number', async () => {
  const { clock, screen } = begin({ screen: new Screen({ columns: 48 }) })
  await clock.advance(0)
  assert.equal(screen.lines[0], 'books 1,284 done · 1,026 queued · 8 in flight')
})

test('prints log lines above itself', async () => {
  const { clock, screen, progress } = begin()
  await clock.advance(0)
  progress.print('warn  first')
  progress.print('warn  second\n  with a detail')
  await clock.advance(1000)
  const lines = screen.text.split('\n')
  assert.deepEqual(lines.slice(0, 3), ['warn  first', 'warn  second', '  with a detail'])
  assert.match(lines[3]!, /^books/)
  assert.equal(lines.length, 5)
})

test('clears itself and restores the cursor when stopped, even twice', async () => {
  const listeners = process.listenerCount('exit')
  const { clock, screen, progress } = begin()
  await clock.advance(400)
  progress.print('kept')
  assert.equal(screen.isCursorShown, false)
  await progress.stop()
  await progress.stop()
  assert.equal(screen.text, 'kept')
  assert.equal(screen.isCursorShown, true)
  assert.equal(process.listenerCount('exit'), listeners)
  progress.print('after')
  assert.equal(screen.text, 'kept\nafter')
})

test("shows the server's request beside its host", async () => {
  const { clock, tally, screen } = begin()
  tally.record({ type: 'throttled', host: 'a.test', untilMs: clock.now() + 30_000, reason: '429, Retry-After 30 s' })
  await clock.advance(200)
  assert.match(screen.text, /! 429 from a\.test: waiting, Retry-After 30 s, until 07:30:30$/)
})

test('removes the third line when the host is free again', async () => {
  const { clock, tally, screen } = begin()
  tally.record({ type: 'throttled', host: 'a.test', untilMs: clock.now() + 1000, reason: '429' })
  await clock.advance(200)
  assert.match(screen.text, /! 429 from a\.test: waiting until 07:30:01$/)
  await clock.advance(2000)
  assert.equal(screen.text.split('\n').length, 2)
})

test('says what pages are waiting for until a page is settled', async () => {
  const { clock, tally, screen } = begin()
  const page = { type: 'page', url: 'https://a.test/', host: 'a.test', route: 'page', attempt: 1 } as const
  const message = 'https://a.test/robots.txt: 503 Service Unavailable'
  const error = { code: 'E_ROBOTS_UNREACHABLE', class: 'robots', message } as const
  tally.record({ ...page, outcome: 'postponed', error, retryAtMs: clock.now() + 4000 })
  await clock.advance(200)
  assert.match(screen.text, /! waiting until 07:30:04: https:\/\/a\.test\/robots\.txt: 503 Service Unavailable$/)
  await clock.advance(5000)
  assert.match(screen.text, /! waiting: https:\/\/a\.test\/robots\.txt: 503 Service Unavailable$/)
  tally.record({ ...page, outcome: 'ok' })
  await clock.advance(200)
  assert.equal(screen.text.split('\n').length, 2)
})

test('says why a paused run makes no progress', async () => {
  const { clock, screen } = begin({
    stats: async () => ({ ...baseStats, isPaused: true, pauseReason: 'asked by ana' }),
  })
  await clock.advance(0)
  assert.match(screen.text, /ETA –[\s\S]*! paused: asked by ana$/)
})

test('writes a plain line every 10 s if the cursor cannot be moved', async () => {
  const { clock, screen } = begin({ screen: new Screen({ isTTY: false }), env: {} })
  await clock.advance(9_900)
  assert.deepEqual(screen.writes, [])
  await clock.advance(20_200)
  assert.equal(screen.writes.length, 3)
  const text = screen.writes.join('')
  assert.equal(text, stripVTControlCharacters(text))
  assert.match(text, /^07:30:10 books: 1,284 done · .* · ETA – · 0 B\/s · 0:10\n/)
})

test('draws nothing when quiet, but still prints lines', async () => {
  const { clock, screen, progress } = begin({ mode: 'none' })
  await clock.advance(60_000)
  progress.print('error  something')
  assert.deepEqual(screen.writes, ['error  something\n'])
})

test('keeps the last figures while the frontier does not answer', async () => {
  let isDown = false
  const { clock, screen } = begin({
    stats: () => (isDown ? Promise.reject(new Error('down')) : Promise.resolve(baseStats)),
  })
  await clock.advance(200)
  isDown = true
  await clock.advance(1000)
  assert.match(screen.text, /1,284 done/)
})

test('uses colour on a terminal and none with NO_COLOR', async () => {
  const coloured = begin({ env: {} })
  await coloured.clock.advance(0)
  assert.ok(coloured.screen.writes.join('').includes('\x1b[36m'))
  await coloured.progress.stop()
  const bare = begin()
  await bare.clock.advance(0)
  assert.ok(!bare.screen.writes.join('').includes('\x1b[36m'))
})

test('says who blocks us, and which host is paused until when', async () => {
  const { clock, tally, screen } = begin()
  await clock.advance(0)
  const blocked = { type: 'blocked', url: 'https://shop.example/', host: 'shop.example', signal: 'title' } as const
  for (let i = 0; i < 4; i++) tally.record({ ...blocked, class: 'challenge', vendor: 'cloudflare' })
  await clock.advance(200)
  assert.equal(screen.text.split('\n')[2], '      ! challenged by cloudflare at shop.example ×4')
  const reason = '10 of 10 requests failed, the last with E_CAPTCHA (status 403)'
  tally.record({ type: 'circuit', host: 'shop.example', state: 'open', reason, untilMs: START_MS + 20_000 })
  await clock.advance(200)
  assert.equal(screen.text.split('\n')[2], `      ! shop.example left alone until 07:30:20: ${reason}`)
  tally.record({ type: 'circuit', host: 'shop.example', state: 'closed', reason: 'answered' })
  await clock.advance(61_000)
  assert.equal(screen.text.split('\n').length, 2, 'old news')
})
