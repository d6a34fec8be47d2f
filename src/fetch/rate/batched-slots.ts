/**
 * Fleet slots kept on a server: requests for slots are sent in batches, and while the server is down each worker uses its share
 * of the rate.
 *
 *   up ──a call fails──▶ down: own share of the rate, and a retry every second ──one succeeds──▶ up
 *
 * Only the server's clock counts. Requests that arrive while a call is in flight are sent together in the next: the busier the
 * worker, the fewer round trips per request.
 */
import { ScrapeError } from '../../core/errors.ts'
import { createLocalSlots } from './local-slots.ts'
import { type FleetSlots, SLOT_HORIZON_MS, type SlotAsk, type SlotGrant } from './spacing.ts'

/** Where the slots of a fleet are kept. Every call may fail; none may take longer than `SLOT_ANSWER_MS_MAX`. */
export interface SlotServer {
  /** For messages: `the rate limits’ database`. */
  readonly name: string
  /** Takes the next starts of hosts, each named once and in order. Hosts unknown to the server may be missing in the answer. */
  take(asks: readonly SlotAsk[]): Promise<SlotAnswer>
  /** A pause shorter than the current one changes nothing. */
  pause(pauses: readonly { host: string; pausedMs: number }[]): Promise<void>
  /** A heartbeat: the other workers count us, for the time when the server cannot be reached. */
  meet(): Promise<void>
  leave(): Promise<void>
  /** Called occasionally to delete expired data. */
  clean?(): Promise<void>
  close(): Promise<void>
}

export interface SlotAnswer {
  hosts: ReadonlyMap<string, HostAnswer>
  /** Workers seen recently; undefined if unknown. */
  workers: number | undefined
}

export interface HostAnswer {
  /** Time until the first start, not counting `earlyMs`. */
  waitMs: number
  taken: number
  pausedMs: number
}

export interface BatchedSlotsOptions {
  /** The server allows this many starts per minute and host; a worker on its own spreads its share evenly. 0: no such limit. */
  perMinute?: number
  /** The server cannot be reached. Called once per outage. */
  onAway?: (error: ScrapeError) => void
  onBack?: () => void
  random?: () => number
}

/** How long the server may take to answer; after that the worker uses its own share. */
export const SLOT_ANSWER_MS_MAX = 1500
/** A worker that was not seen for this long has ended, or starts nothing. */
export const SLOT_WORKER_MS_MAX = 20_000
/** A waiting worker asks again at least this often, so that it learns of a pause. */
const ASK_AGAIN_MS_MAX = 1000
const TRY_AGAIN_MS = 1000
const MEET_EVERY_MS = 5000
const CLEAN_EVERY_MS = 600_000
/** Hosts in one call. */
const ASKS_MAX = 200

interface Question {
  ask: SlotAsk
  answer: (grant: SlotGrant) => void
}

/** Takes ownership of the server. Throws `E_SERVICE` if it cannot be reached now; later outages are tolerated. */
export async function openBatchedSlots(server: SlotServer, options: BatchedSlotsOptions): Promise<FleetSlots> {
  try {
    await server.meet()
    return new BatchedSlots(server, options)
  } catch (error) {
    await server.close()
    throw new ScrapeError('E_SERVICE', `${server.name} does not answer: ${reasonOf(error)}`, { cause: error })
  }
}

class BatchedSlots implements FleetSlots {
  readonly perMinute: number
  readonly #server: SlotServer
  readonly #options: BatchedSlotsOptions
  readonly #random: () => number
  readonly #local = createLocalSlots()
  #questions: Question[] = []
  /** Host and local time; kept until the server has received them. */
  readonly #pauses = new Map<string, number>()
  #flight: Promise<void> | undefined
  #isAway = false
  #tryAtMs = 0
  #meetAtMs = performance.now() + MEET_EVERY_MS
  #cleanAtMs = performance.now() + CLEAN_EVERY_MS
  #isDisposed = false

  constructor(server: SlotServer, options: BatchedSlotsOptions) {
    this.#server = server
    this.#options = options
    this.#random = options.random ?? Math.random
    this.perMinute = options.perMinute ?? 0
  }

  take(ask: SlotAsk): Promise<SlotGrant> {
    const { promise, resolve } = Promise.withResolvers<SlotGrant>()
    this.#questions.push({ ask, answer: resolve })
    this.#fly()
    return promise
  }

  pause(host: string, pausedMs: number): void {
    this.#pauses.set(host, Math.max(this.#pauses.get(host) ?? 0, performance.now() + pausedMs))
    this.#fly()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isDisposed) return
    this.#isDisposed = true
    await this.#flight
    if (!this.#isAway) await this.#leave().catch(() => {}) // on failure, our heartbeat expires by itself
    await this.#server.close()
  }

  /** One call at a time; later requests wait for the next. */
  #fly(): void {
    if (this.#flight !== undefined) return
    this.#flight = this.#round().finally(() => {
      this.#flight = undefined
      if (this.#questions.length > 0 || (this.#pauses.size > 0 && !this.#isAway && !this.#isDisposed)) this.#fly()
    })
  }

  async #round(): Promise<void> {
    await Promise.resolve() // include requests from the same turn of the event loop
    const questions = this.#nextQuestions()
    if (this.#isDisposed || (this.#isAway && performance.now() < this.#tryAtMs)) {
      this.#answerAlone(questions)
      return
    }
    try {
      await this.#sendPauses()
      if (questions.length > 0) await this.#answer(questions)
      if (performance.now() >= this.#meetAtMs) await this.#meet()
      if (performance.now() >= this.#cleanAtMs) await this.#clean()
      if (this.#isAway) this.#comeBack()
    } catch (error) {
      this.#tryAtMs = performance.now() + TRY_AGAIN_MS
      const wasAway = this.#isAway
      this.#isAway = true
      this.#answerAlone(questions)
      if (!wasAway) this.#options.onAway?.(this.#awayError(error))
    }
  }

  #comeBack(): void {
    this.#isAway = false
    this.#local.forget()
    this.#options.onBack?.()
  }

  /** One request per host, because a server can change a host only once in a call. */
  #nextQuestions(): Question[] {
    const chosen = new Map<string, Question>()
    const later: Question[] = []
    for (const question of this.#questions) {
      if (chosen.size < ASKS_MAX && !chosen.has(question.ask.host)) chosen.set(question.ask.host, question)
      else later.push(question)
    }
    this.#questions = later
    // In the same order for all workers: two calls that lock the same hosts in a different order would deadlock.
    return [...chosen.values()].sort((a, b) => (a.ask.host < b.ask.host ? -1 : 1))
  }

  async #answer(questions: readonly Question[]): Promise<void> {
    const { hosts, workers } = await this.#server.take(questions.map(({ ask }) => ask))
    if (workers !== undefined) this.#local.workers = Math.max(1, workers)
    for (const { ask, answer } of questions) answer(this.#toGrant(ask, hosts.get(ask.host)))
  }

  #toGrant({ intervalMs, earlyMs }: SlotAsk, found: HostAnswer | undefined): SlotGrant {
    if (found === undefined) return { startsInMs: [], againInMs: 0, pausedMs: 0 } // a host without a rate that was never paused
    const { waitMs, taken, pausedMs } = found
    const startsInMs = Array.from({ length: taken }, (_, i) => Math.max(0, waitMs + i * intervalMs - earlyMs))
    // Workers that wait for the same slot should not all ask at once.
    const nearMs = waitMs - earlyMs - SLOT_HORIZON_MS + this.#random() * 100
    return { startsInMs, againInMs: Math.min(ASK_AGAIN_MS_MAX, Math.max(1, nearMs)), pausedMs }
  }

  /** The requests of a minute are not counted now, so they are spread evenly over it. Answering twice is harmless. */
  #answerAlone(questions: readonly Question[]): void {
    const gapMs = this.perMinute > 0 ? 60_000 / this.perMinute : 0
    for (const { ask, answer } of questions) {
      const intervalMs = ask.intervalMs === 0 ? 0 : Math.max(ask.intervalMs, gapMs)
      answer(this.#local.take({ ...ask, intervalMs }))
    }
  }

  async #sendPauses(): Promise<void> {
    if (this.#pauses.size === 0) return
    const sent = [...this.#pauses].sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, ASKS_MAX)
    const nowMs = performance.now()
    await this.#server.pause(sent.map(([host, untilMs]) => ({ host, pausedMs: Math.max(0, untilMs - nowMs) })))
    for (const [host, untilMs] of sent) if (this.#pauses.get(host) === untilMs) this.#pauses.delete(host)
  }

  async #meet(): Promise<void> {
    await this.#server.meet()
    this.#meetAtMs = performance.now() + MEET_EVERY_MS
  }

  async #leave(): Promise<void> {
    await this.#sendPauses()
    await this.#server.leave()
  }

  async #clean(): Promise<void> {
    this.#cleanAtMs = performance.now() + CLEAN_EVERY_MS
    await this.#server.clean?.()
  }

  #awayError(cause: unknown): ScrapeError {
    const message = `${this.#server.name} does not answer (${reasonOf(cause)}); this worker keeps to 1/${this.#local.workers} of each host’s rate`
    return new ScrapeError('E_SERVICE', message, { cause })
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error && error.message !== '' ? error.message : String((error as NodeJS.ErrnoException)?.code)
}
