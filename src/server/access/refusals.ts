/**
 * Refused requests for the audit log, bounded: a client that is refused a thousand times a second must not fill the disk. Each
 * combination of caller, address and status gets one line a minute. The number of further refusals follows when the minute is
 * over, even if the flood has stopped by then. There are at most 60 lines a minute in all.
 *
 *   first refusal ──▶ a line ──▶ more are counted ──a minute later──▶ a line with their number ──▶ counted …
 *                                                                  └─ there were none: forgotten
 */
import { every } from '../../core/every.ts'
import type { AuditEntry } from './audit.ts'

const EVERY_MS = 60_000
const LINES_MAX = 60
/** Callers with their own counter; all others in a minute are counted together. */
const KNOWN_MAX = 1000

export type Refusal = Omit<AuditEntry, 'detail'>

interface RefusalsOptions {
  /** Stores one line. */
  write: (line: AuditEntry) => void
  now?: () => number
}

interface Counted {
  last: Refusal
  saidAtMs: number
  silent: number
}

export class BoundedRefusals implements Disposable {
  readonly #write: (line: AuditEntry) => void
  readonly #now: () => number
  /** In the order of their last lines, oldest first. */
  readonly #known = new Map<string, Counted>()
  /** Refusals that got no counter or line of their own. */
  #others: { last: Refusal; silent: number } | undefined
  #minuteAtMs = Number.NEGATIVE_INFINITY
  #lines = 0
  #timer: NodeJS.Timeout | undefined

  constructor({ write, now = Date.now }: RefusalsOptions) {
    this.#write = write
    this.#now = now
  }

  add(refusal: Refusal): void {
    this.flush()
    const key = `${refusal.caller}\n${refusal.address}\n${refusal.status}`
    const known = this.#known.get(key)
    if (known !== undefined) {
      known.last = refusal
      known.silent++
    } else if (this.#known.size < KNOWN_MAX && this.#mayWrite()) {
      this.#say(refusal, '')
      this.#known.set(key, { last: refusal, saidAtMs: this.#now(), silent: 0 })
    } else this.#others = { last: refusal, silent: (this.#others?.silent ?? 0) + 1 }
    // Unreferenced: a process that exits writes the rest on disposal.
    this.#timer ??= every(() => this.flush(), EVERY_MS).unref()
  }

  /** Reports the counts whose minute is over. */
  flush(): void {
    this.#sayOver(this.#now() - EVERY_MS)
    if (this.#known.size > 0 || this.#others !== undefined) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Reports all remaining counts, as far as the line limit allows. */
  [Symbol.dispose](): void {
    this.#sayOver(Number.POSITIVE_INFINITY)
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #sayOver(untilMs: number): void {
    if (this.#others !== undefined && this.#minuteAtMs <= untilMs && this.#mayWrite()) {
      const { last, silent } = this.#others
      this.#others = undefined
      this.#say({ ...last, caller: 'others', address: '' }, `${silent} refused for whom there was no line`)
    }
    for (const [key, counted] of this.#known) {
      if (counted.saidAtMs > untilMs) return
      if (counted.silent > 0 && !this.#mayWrite()) return
      this.#known.delete(key)
      if (counted.silent === 0) continue
      this.#say(counted.last, `and ${counted.silent} more since the last line`)
      this.#known.set(key, { ...counted, saidAtMs: this.#now(), silent: 0 })
    }
  }

  #mayWrite(): boolean {
    if (this.#now() - this.#minuteAtMs >= EVERY_MS) {
      this.#minuteAtMs = this.#now()
      this.#lines = 0
    }
    return this.#lines < LINES_MAX
  }

  #say(refusal: Refusal, detail: string): void {
    this.#lines++
    this.#write({ ...refusal, detail })
  }
}
