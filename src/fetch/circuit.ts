/**
 * Circuit breaker, per host: a site that only fails is left alone, and then asked by one page before the others follow.
 *
 *   `openAfter` failed in a row, or 4 in 5 of the last 20 or of the window
 *   closed ───────────────────────────────────────────────▶ open ◀──────────────┐
 *      ▲                                                      │ cool-down over:  │ it fails: twice the cool-down
 *      │                  it is answered                      ▼ one page enters  │
 *      └────────────────────────────────────────────────── half-open ───────────┘
 *                                                (a probe nobody hears of again is replaced)
 *
 * An open host is paused in the rate limit, so that nothing is claimed for it; what comes all the same is sent back with
 * `E_CIRCUIT_OPEN`, which costs no try. That must end too: a host that stays open for longer than `patienceMs` is no longer
 * waited for. Its pages are then told no time, which costs each a try and in the end makes dead letters of them: for what it was
 * that failed, where that was a block.
 */
import { LRUCache } from 'lru-cache'
import type { ErrorCode } from '../core/error-table.ts'
import { ScrapeError } from '../core/errors.ts'
import type { EventBus } from '../core/events.ts'
import { BLOCK_CODES } from './block-pauses.ts'
import { outcomeOfError } from './circuit-outcome.ts'
import { LAST_MAX, RequestWindow } from './circuit-window.ts'
import type { RateLimit } from './contract.ts'

export interface CircuitOptions {
  /** Failures within the window that open it. Default 10. */
  openAfter?: number
  /** Default 60 s. */
  windowMs?: number
  /** The first cool-down; each failed probe doubles it. Default 5 s. */
  coolDownMs?: number
  /** Default 5 min. */
  coolDownMsMax?: number
  /** How long a probe may take before another one may go. Default 60 s. */
  probeMs?: number
  /** How long an open host is waited for at nobody's cost. Default 1 min: a run whose site is down must end. */
  patienceMs?: number
  /** Holds open hosts back. */
  rateLimit?: Pick<RateLimit, 'pause'>
  events?: Pick<EventBus, 'emit'>
  /** Epoch milliseconds, for what is said. */
  now?: () => number
  /** Milliseconds that only ever grow, for what is counted. */
  monotonicNow?: () => number
  random?: () => number
}

export type CircuitState = 'closed' | 'open' | 'half-open'

export interface CircuitView {
  host: string
  state: CircuitState
  /** Within the window. */
  failed: number
  requests: number
  /** Why it is not closed. */
  reason: string
  /** When the next probe may go (epoch ms). */
  untilMs?: number
}

/** A request under way. Its end is told once; telling it again changes nothing. */
export interface Pass {
  /** `error` left out: it was answered. */
  end(error?: unknown): void
}

export interface Circuit {
  /** Throws `E_CIRCUIT_OPEN` (verdict: later) while the host is left alone. Takes nothing: for before the wait for a slot. */
  check(host: string): void
  /** The same, right before the request goes out; the first one after the cool-down is the probe. */
  enter(host: string): Pass
  /** Hosts that are not closed, or failed lately. */
  states(): CircuitView[]
}

const FAILED_SHARE_MIN = 0.8
const HOSTS_MAX = 10_000
/** While a probe is out the host is held back for so long at a time: more than what the crawl loop waits out by itself. */
const PROBE_HOLD_MS_MAX = 6000

interface HostCircuit {
  readonly host: string
  readonly window: RequestWindow
  state: CircuitState
  /** Grows with every change of state: what was under way before it has nothing new to say. */
  epoch: number
  /** open: no probe before it · half-open: the probe is lost after it. */
  untilMs: number
  /** Openings since it last was well for a window. */
  inARow: number
  openSinceMs: number
  closedAtMs: number
  reason: string
  /** What its pages fail with when it is no longer waited for. */
  code: ErrorCode
}

export function createCircuit(options: CircuitOptions = {}): Circuit {
  const { openAfter = 10, windowMs = 60_000, coolDownMs = 5000, coolDownMsMax = 300_000 } = options
  const { probeMs = 60_000, patienceMs = 60_000, rateLimit, events } = options
  const { now = Date.now, monotonicNow = () => performance.now(), random = Math.random } = options
  const probeHoldMs = Math.min(PROBE_HOLD_MS_MAX, coolDownMs)
  const hosts = new LRUCache<string, HostCircuit>({
    max: HOSTS_MAX,
    dispose: (circuit, host, why) => {
      if (why === 'evict' && circuit.state !== 'closed') say(host, 'closed', 'forgotten: too many hosts')
    },
  })

  function say(host: string, state: CircuitState, reason: string, waitMs?: number): void {
    const until = waitMs === undefined ? {} : { untilMs: Math.ceil(now() + waitMs) }
    events?.emit({ type: 'circuit', host, state, reason, ...until })
  }

  const patienceLeftMs = ({ openSinceMs }: HostCircuit) => openSinceMs + patienceMs - monotonicNow()

  function hold(circuit: HostCircuit, waitMs: number): void {
    const heldMs = Math.min(waitMs, patienceLeftMs(circuit))
    if (heldMs > 0) rateLimit?.pause(circuit.host, Math.ceil(now() + heldMs), `circuit open: ${circuit.reason}`)
  }

  function open(circuit: HostCircuit, reason: string, error: unknown): void {
    const nowMs = monotonicNow()
    const isStill = circuit.state !== 'closed' || nowMs - circuit.closedAtMs < windowMs
    circuit.inARow = isStill ? circuit.inARow + 1 : 1
    if (circuit.state === 'closed') circuit.openSinceMs = nowMs
    // Jitter makes it longer only: the workers of a fleet must not probe together, nor sooner than was said.
    const waitMs = Math.min(coolDownMsMax, coolDownMs * 2 ** (circuit.inARow - 1)) * (1 + random() / 4)
    become(circuit, 'open', nowMs + waitMs)
    circuit.reason = reason
    circuit.code = error instanceof ScrapeError && BLOCK_CODES.has(error.code) ? error.code : 'E_CIRCUIT_OPEN'
    circuit.window.clear()
    say(circuit.host, 'open', reason, waitMs)
    hold(circuit, waitMs)
  }

  function close(circuit: HostCircuit): void {
    become(circuit, 'closed', 0)
    circuit.closedAtMs = monotonicNow()
    circuit.reason = ''
    say(circuit.host, 'closed', 'the probe was answered')
  }

  function become(circuit: HostCircuit, state: CircuitState, untilMs: number): void {
    circuit.state = state
    circuit.untilMs = untilMs
    circuit.epoch++
  }

  /** Throws unless a request may go; true when it would be the probe. */
  function mayEnter(circuit: HostCircuit): boolean {
    if (circuit.state === 'closed') return false
    const leftMs = circuit.untilMs - monotonicNow()
    if (leftMs <= 0) return true
    const { host, reason, code } = circuit
    const patientMs = patienceLeftMs(circuit)
    if (patientMs <= 0) throw new ScrapeError(code, `${host} has been failing for too long: ${reason}`)
    const waitMs = Math.ceil(Math.min(leftMs, patientMs, circuit.state === 'open' ? leftMs : probeHoldMs))
    hold(circuit, waitMs)
    const message = `${host} is left alone for ${Math.ceil(waitMs / 1000)} s: ${reason}`
    throw new ScrapeError('E_CIRCUIT_OPEN', message, { retryAfterMs: waitMs })
  }

  function settle(circuit: HostCircuit, epoch: number, error: unknown): void {
    if (epoch !== circuit.epoch || hosts.peek(circuit.host) !== circuit) return
    const outcome = outcomeOfError(error)
    if (circuit.state === 'half-open') {
      if (outcome === 'failed') open(circuit, `the probe failed: ${wordsOf(error)}`, error)
      else if (outcome !== 'unsent') close(circuit)
      else {
        become(circuit, 'open', monotonicNow() + probeHoldMs)
        say(circuit.host, 'open', 'the probe was not sent', probeHoldMs)
      }
    } else if (outcome === 'failed' || outcome === 'answered') {
      circuit.window.add(monotonicNow(), outcome === 'failed')
      if (outcome === 'failed') openIfBad(circuit, error)
    }
  }

  function openIfBad(circuit: HostCircuit, error: unknown): void {
    const nowMs = monotonicNow()
    const all = circuit.window.read(nowMs)
    const last = circuit.window.readLast(nowMs)
    // However well it was before: a site that begins to fail is noticed within a few requests, not within a minute.
    const isBadNow = last.failedInARow >= openAfter || (last.requests === LAST_MAX && isMost(last))
    if (!isBadNow && (all.failed < openAfter || !isMost(all))) return
    const { failed, requests } = isMost(all) ? all : last
    open(circuit, `${failed} of ${requests} requests failed, the last with ${wordsOf(error)}`, error)
  }

  function circuitOf(host: string): HostCircuit {
    const known = hosts.get(host)
    if (known !== undefined) return known
    const circuit: HostCircuit = {
      host,
      window: new RequestWindow(windowMs),
      state: 'closed',
      epoch: 0,
      untilMs: 0,
      inARow: 0,
      openSinceMs: 0,
      closedAtMs: Number.NEGATIVE_INFINITY,
      reason: '',
      code: 'E_CIRCUIT_OPEN',
    }
    hosts.set(host, circuit)
    return circuit
  }

  return {
    check(host) {
      const circuit = hosts.get(host)
      if (circuit !== undefined) mayEnter(circuit)
    },
    enter(host) {
      const circuit = circuitOf(host)
      if (mayEnter(circuit)) {
        become(circuit, 'half-open', monotonicNow() + probeMs)
        say(host, 'half-open', `probing: ${circuit.reason}`, probeMs)
        hold(circuit, probeHoldMs)
      }
      const { epoch } = circuit
      return { end: (error) => settle(circuit, epoch, error) }
    },
    states() {
      const nowMs = monotonicNow()
      const views: CircuitView[] = []
      for (const { host, state, window, reason, untilMs } of hosts.values()) {
        const counts = window.read(nowMs)
        if (state === 'closed' && counts.failed === 0) continue
        const until = state === 'closed' ? {} : { untilMs: Math.ceil(now() + untilMs - nowMs) }
        views.push({ host, state, reason, ...counts, ...until })
      }
      return views
    },
  }
}

const isMost = ({ failed, requests }: { failed: number; requests: number }) => failed >= FAILED_SHARE_MIN * requests

function wordsOf(error: unknown): string {
  if (!(error instanceof ScrapeError)) return String(error)
  const { status } = error.details
  return status === undefined ? error.code : `${error.code} (status ${status})`
}
