/**
 * What happens in a run, for any number of clients: the run is polled once every quarter of a second however many there are, and
 * less often for a minute after the last one has left. A client that reconnects with the id of its last event gets what it
 * missed, or a fresh start.
 */
import { randomBytes } from 'node:crypto'
import { redactAll } from '../../../core/redact.ts'
import { runStats } from '../../../runs/run-numbers.ts'
import type { OpenRun, RunLogLines } from '../../../runs/run-view.ts'
import { idleReason } from './idle-reason.ts'
import type { OpenRunCache } from './open-run-cache.ts'

const LOOK_MS = 250
/** Polling interval without clients. */
const UNWATCHED_LOOK_MS = 1000
/** How long to wait for a client whose connection broke to reconnect. */
const UNWATCHED_MS_MAX = 60_000
/** Maximum number of events kept for clients that reconnect. */
const KEPT_MAX = 1000
/** A client this far behind is disconnected: it reconnects and starts over. */
const BEHIND_MAX = 2000
/** Something must be sent now and then, or middleboxes consider the connection dead. */
const QUIET_MS_MAX = 15_000

interface FeedEvent {
  id: string
  type: 'run' | 'log' | 'end'
  data: string
}

interface Watcher {
  waiting: FeedEvent[]
  wake: (() => void) | undefined
  isCut: boolean
}

export class Feeds implements Disposable {
  readonly #openRuns: OpenRunCache
  readonly #feeds = new Map<string, Feed>()

  constructor(openRuns: OpenRunCache) {
    this.#openRuns = openRuns
  }

  /**
   * The run as server-sent events, until it is over or the client has gone. Undefined: the client has already received this end,
   * and there is nothing more. Throws `E_RUN_NOT_FOUND` before the first event.
   */
  async watch(
    runId: string,
    lastId: string | undefined,
    signal: AbortSignal,
  ): Promise<AsyncGenerator<string> | undefined> {
    const run = await this.#openRuns.run(runId)
    if (isEnded(run) && lastId !== undefined && END_ID.exec(lastId)?.[1] === endMark(run)) return undefined
    let feed = this.#feeds.get(runId)
    // A feed that has reported an end does not know that the run was resumed.
    if (feed === undefined || (feed.isOver && !isEnded(run))) {
      feed?.[Symbol.dispose]()
      feed = new Feed(
        () => this.#openRuns.run(runId),
        (idle) => this.#feeds.get(runId) === idle && this.#feeds.delete(runId),
      )
      this.#feeds.set(runId, feed)
    }
    return feed.watch(lastId, signal)
  }

  get size(): number {
    return this.#feeds.size
  }

  [Symbol.dispose](): void {
    for (const feed of this.#feeds.values()) feed[Symbol.dispose]()
  }
}

/**
 * The id of the last event identifies this end of the run, so that it is recognised after a restart and not confused with a later
 * one.
 */
const END_ID = /^[0-9a-f]{8}-\d+-(\d+)$/
const endMark = (run: OpenRun) => String(Date.parse(run.record.finishedAt!))

const isEnded = (run: OpenRun) => run.isOver && run.record.finishedAt !== null

class Feed implements Disposable {
  readonly #look: () => Promise<OpenRun>
  readonly #onIdle: (feed: Feed) => void
  readonly #epoch = randomBytes(4).toString('hex')
  readonly #watchers = new Set<Watcher>()
  readonly #kept: FeedEvent[] = []
  #count = 0
  #last: FeedEvent | undefined
  #isOver = false
  #isDisposed = false
  #watchedAtMs = performance.now()
  #log: { run: OpenRun; reader: RunLogLines; at: number } | undefined
  /** Number of log lines sent so far. */
  #logLines = 0

  constructor(look: () => Promise<OpenRun>, onIdle: (feed: Feed) => void) {
    this.#look = look
    this.#onIdle = onIdle
    void this.#run()
  }

  /** The end of the run has been sent. */
  get isOver(): boolean {
    return this.#isOver
  }

  async *watch(lastId: string | undefined, signal: AbortSignal): AsyncGenerator<string> {
    const watcher: Watcher = { waiting: this.#missedSince(lastId), wake: undefined, isCut: false }
    this.#watchers.add(watcher)
    const onAbort = () => watcher.wake?.()
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      yield 'retry: 2000\n\n'
      while (!signal.aborted && !watcher.isCut) {
        const events = watcher.waiting.splice(0)
        if (events.length > 0) yield events.map(asText).join('')
        if (watcher.waiting.length > 0) continue
        if (this.#isOver) return
        if (!(await woken(watcher))) yield ': still here\n\n'
      }
    } finally {
      signal.removeEventListener('abort', onAbort)
      this.#watchers.delete(watcher)
      this.#watchedAtMs = performance.now()
    }
  }

  /** All events since then if they are still kept; otherwise the current state, with the log as far as it is kept. */
  #missedSince(lastId: string | undefined): FeedEvent[] {
    const at = this.#kept.findIndex(({ id }) => id === lastId)
    if (at !== -1) return this.#kept.slice(at + 1)
    const now = this.#kept.filter((event) => event.type !== 'run' || event === this.#last)
    return this.#last === undefined || now.includes(this.#last) ? now : [this.#last, ...now]
  }

  async #run(): Promise<void> {
    let before = ''
    while (!this.#isDisposed && (this.#watchers.size > 0 || performance.now() - this.#watchedAtMs < UNWATCHED_MS_MAX)) {
      try {
        if (!this.#isOver) before = await this.#report(await this.#look(), before)
      } catch {
        // The store is unreachable; the clients keep waiting.
      }
      const isWatched = this.#watchers.size > 0 && !this.#isOver
      await new Promise((resolve) => setTimeout(resolve, isWatched ? LOOK_MS : UNWATCHED_LOOK_MS).unref())
    }
    this.#onIdle(this)
  }

  /** Reads the lines not sent yet. If the run was closed and reopened in between, its log is read from the start. */
  async #readLog(run: OpenRun): Promise<void> {
    if (this.#log?.run !== run) this.#log = { run, reader: run.log.fromStart(), at: 0 }
    const log = this.#log
    for await (const lines of log.reader.read())
      for (const line of lines) {
        if (++log.at <= this.#logLines) continue
        this.#emit('log', line)
        this.#logLines++
      }
  }

  async #report(run: OpenRun, before: string): Promise<string> {
    const isOver = isEnded(run)
    await this.#readLog(run)
    const numbers = await runStats(run)
    const { pending, claimed, completed, failed, dead, remaining, isPaused } = numbers
    const { state, items, latencyMs, bytes, durationMs } = run.record
    const queue = { pending, claimed, completed, failed, dead, remaining }
    const why = await idleReason(run, numbers)
    const { isAlive } = run
    const now = JSON.stringify(redactAll({ state, isAlive, isPaused, why, queue, items, latencyMs, bytes, durationMs }))
    if (now !== before) this.#last = this.#emit('run', now)
    if (isOver) {
      this.#isOver = true
      this.#emit('end', JSON.stringify(redactAll({ state, reason: run.record.reason })), `-${endMark(run)}`)
    }
    return now
  }

  #emit(type: FeedEvent['type'], data: string, mark = ''): FeedEvent {
    const event = { id: `${this.#epoch}-${++this.#count}${mark}`, type, data }
    this.#kept.push(event)
    if (this.#kept.length > KEPT_MAX) this.#kept.splice(0, KEPT_MAX / 10)
    for (const watcher of this.#watchers) {
      if (watcher.waiting.length >= BEHIND_MAX) watcher.isCut = true
      else watcher.waiting.push(event)
      watcher.wake?.()
    }
    return event
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
  }
}

/** False after a while without events. */
function woken(watcher: Watcher): Promise<boolean> {
  return new Promise((resolve) => {
    const done = (isNews: boolean) => {
      clearTimeout(timer)
      watcher.wake = undefined
      resolve(isNews)
    }
    const timer = setTimeout(() => done(false), QUIET_MS_MAX)
    watcher.wake = () => done(true)
  })
}

/** SSE data must be a single line; JSON contains no line breaks. */
const asText = ({ id, type, data }: FeedEvent) => `id: ${id}\nevent: ${type}\ndata: ${data.replaceAll('\n', ' ')}\n\n`
