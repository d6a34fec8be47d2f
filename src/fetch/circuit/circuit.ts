/**
 * Circuit breaker, per host: a host where page after page fails is only probed with a few pages at a time until one succeeds.
 *
 *   `openAfter` different pages failed in a row, or 4 in 5 of the last ones
 *   closed ───────────────────────────────────────────────▶ open ◀──────────────┐
 *      ▲                                                      │ cool-down over:  │ all of them fail: another cool-down,
 *      │              one of them is answered                 ▼ probes enter     │ twice as many probes (up to 8)
 *      └────────────────────────────────────────────────── half-open ───────────┘
 *                                             (probes that never report back are replaced)
 *
 * One page cannot tell a dead host from a dead page, so the breaker counts distinct pages: the first failure of each page counts,
 * its retries do not. Probes are pages that have not failed yet; failed ones are used only if there are no others. After each
 * failed round the number of probes doubles, so a stretch of bad pages is crossed in a few rounds. Failures that concern the host
 * itself (no connection, bot protection) are different: there one probe is enough, and the cool-down doubles.
 *
 * A successful probe means a false alarm or a recovery. Either way it takes twice as many failures to open the circuit again, so
 * that a site where most pages are broken is not stopped over and over.
 *
 * A page that is held back (`E_CIRCUIT_OPEN`) always gets a time for its next attempt, and is not charged: however long the
 * circuit stays open, no page is given up because of others. `crawl/stall.ts` decides when a run with nothing else left stops.
 */
import { LRUCache } from 'lru-cache'
import { ScrapeError } from '../../core/errors.ts'
import type { EventBus } from '../../core/events.ts'
import type { RateLimit } from '../contract.ts'
import { isAboutHost, outcomeOfError } from './outcome.ts'
import { RequestWindow } from './window.ts'

export interface CircuitOptions {
  /** Distinct pages that must have failed before it opens. Default 10. */
  openAfter?: number
  /** The setting of a single host. `off`: its circuit never opens. */
  openAfterOf?: (host: string) => number | 'off' | undefined
  /** Default 60 s. */
  windowMs?: number
  /** Default 5 s. */
  coolDownMs?: number
  /** Default 5 min. */
  coolDownMsMax?: number
  /** How long probes may take before others replace them. Default 60 s. */
  probeMs?: number
  /** Pauses hosts whose circuit is open. */
  rateLimit?: Pick<RateLimit, 'pause'>
  events?: Pick<EventBus, 'emit'>
  /** Epoch milliseconds, for events and messages. */
  now?: () => number
  /** Monotonic milliseconds, for measuring. */
  monotonicNow?: () => number
  random?: () => number
}

type CircuitState = 'closed' | 'open' | 'half-open'

interface CircuitView {
  host: string
  state: CircuitState
  /** Within the window. */
  failed: number
  requests: number
  /** Why it is not closed. */
  reason: string
  /** When the next probe may be sent (epoch ms). */
  untilMs?: number
}

/** The page of a request. */
export interface CircuitPage {
  host: string
  /** The same for every attempt at one page. */
  id: string
  /** An earlier attempt failed, here or in another process. */
  isRetry: boolean
}

/** A request in flight. Only the first call of `end` counts. */
export interface Pass {
  /** If `error` is omitted, the host answered. */
  end(error?: unknown): void
}

export interface Circuit {
  /** Throws `E_CIRCUIT_OPEN` (verdict: later) if the page may not be requested now. Changes nothing: call it before waiting. */
  check(page: CircuitPage): void
  /** The same, right before the request is sent; the first requests after the cool-down are the probes. */
  enter(page: CircuitPage): Pass
  /** Hosts whose circuit is not closed, or that failed recently. */
  states(): CircuitView[]
}

const FAILED_SHARE_MIN = 0.8
const HOSTS_MAX = 10_000
/** Failed pages remembered per host; a forgotten one counts again when it fails. */
const FAILED_PAGES_MAX = 1000
/** Probes in one round: as many as a host gets at once by default, and a seventh of its default rate. */
const PROBES_MAX = 8
/** How often the number of failures needed to open the circuit may double. */
const FALSE_ALARMS_MAX = 3
/** False alarms are forgotten after this many windows. */
const CALM_WINDOWS = 10
/** Rounds come at an even pace for this long. After that the host is probably down, not patchy, and the cool-down doubles. */
const EVEN_PACE_MS = 180_000
/** How long the host is paused at a time while probes are in flight. */
const PROBE_HOLD_MS_MAX = 2000

interface HostCircuit {
  readonly host: string
  readonly openAfter: number
  readonly window: RequestWindow
  /** Pages that failed and have not been answered since. Created with the first failure. */
  failedPages: Set<string> | undefined
  state: CircuitState
  /** Incremented with every change of state, so that results of earlier requests are ignored. */
  epoch: number
  /** open: no probe before this time · half-open: probes count as lost after it. */
  untilMs: number
  /** Before this time, only pages that have not failed may probe. */
  freshUntilMs: number
  /** Probes of a round; below, those that may still be sent and those that failed. */
  probes: number
  probesLeft: number
  probesFailed: number
  doublings: number
  falseAlarms: number
  openSinceMs: number
  closedAtMs: number
  reason: string
}

export function createCircuit(options: CircuitOptions = {}): Circuit {
  const { openAfter = 10, openAfterOf, windowMs = 60_000, coolDownMs = 5000, coolDownMsMax = 300_000 } = options
  const { probeMs = 60_000, rateLimit, events } = options
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

  function hold({ host, reason }: HostCircuit, waitMs: number): void {
    rateLimit?.pause(host, Math.ceil(now() + waitMs), `circuit open: ${reason}`)
  }

  function open(circuit: HostCircuit, reason: string, error: unknown): void {
    const nowMs = monotonicNow()
    const isHosts = isAboutHost(error)
    if (circuit.state === 'closed') {
      circuit.openSinceMs = nowMs
      circuit.probes = 1
      circuit.doublings = isHosts ? recentFalseAlarms(circuit) : 0
    } else {
      circuit.probes = isHosts ? 1 : Math.min(PROBES_MAX, 2 * circuit.probes)
      if (isHosts || nowMs - circuit.openSinceMs > EVEN_PACE_MS) circuit.doublings++
    }
    // Jitter only lengthens the wait: the workers of a fleet must not all probe at the same time, or earlier than announced.
    const waitMs = Math.min(coolDownMsMax, coolDownMs * 2 ** circuit.doublings) * (1 + random() / 4)
    become(circuit, 'open', nowMs + waitMs)
    circuit.freshUntilMs = circuit.untilMs + coolDownMs
    circuit.reason = reason
    circuit.window.clear()
    say(circuit.host, 'open', reason, waitMs)
    hold(circuit, waitMs)
  }

  function close(circuit: HostCircuit): void {
    circuit.falseAlarms = recentFalseAlarms(circuit) + 1
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

  function recentFalseAlarms({ falseAlarms, closedAtMs }: HostCircuit): number {
    return monotonicNow() - closedAtMs < CALM_WINDOWS * windowMs ? Math.min(FALSE_ALARMS_MAX, falseAlarms) : 0
  }

  function mayEnter(circuit: HostCircuit, { id, isRetry }: CircuitPage): void {
    if (circuit.state === 'closed') return
    const nowMs = monotonicNow()
    const leftMs = circuit.untilMs - nowMs
    if (circuit.state === 'open' && leftMs > 0) {
      hold(circuit, leftMs)
      throw refusal(circuit, leftMs)
    }
    if (circuit.state === 'half-open' && circuit.probesLeft === 0 && leftMs > 0) {
      hold(circuit, probeHoldMs)
      throw refusal(circuit, probeHoldMs)
    }
    const hasFailed = isRetry || circuit.failedPages?.has(id) === true
    if (hasFailed && nowMs < circuit.freshUntilMs) throw refusal(circuit, circuit.freshUntilMs - nowMs)
  }

  function refusal({ host, reason }: HostCircuit, waitMs: number): ScrapeError {
    const message = `${host} waits for ${Math.ceil(waitMs / 1000)} s (circuit open): ${reason}`
    return new ScrapeError('E_CIRCUIT_OPEN', message, { retryAfterMs: Math.ceil(waitMs) })
  }

  function probe(circuit: HostCircuit): void {
    const isLost = circuit.untilMs <= monotonicNow()
    if (circuit.state === 'open' || isLost) {
      become(circuit, 'half-open', monotonicNow() + probeMs)
      circuit.probesLeft = circuit.probes
      circuit.probesFailed = 0
      say(circuit.host, 'half-open', `probing: ${circuit.reason}`, probeMs)
    }
    if (--circuit.probesLeft === 0) hold(circuit, probeHoldMs)
  }

  function settle(circuit: HostCircuit, { id, isRetry }: CircuitPage, epoch: number, error: unknown): void {
    const outcome = outcomeOfError(error)
    const isNews = outcome === 'failed' && noteFailure(circuit, id) && !isRetry
    if (outcome === 'answered') circuit.failedPages?.delete(id)
    if (epoch !== circuit.epoch || hosts.peek(circuit.host) !== circuit) return
    if (circuit.state === 'half-open') {
      if (outcome === 'unsent') circuit.probesLeft++
      else if (outcome !== 'failed') close(circuit)
      else if (++circuit.probesFailed >= circuit.probes) {
        const which = circuit.probes === 1 ? 'the probe' : `${circuit.probes} probes`
        open(circuit, `${which} failed: ${wordsOf(error)}`, error)
      }
    } else if (isNews || outcome === 'answered') {
      circuit.window.add(monotonicNow(), isNews)
      if (isNews) openIfBad(circuit, error)
    }
  }

  /** False if the page has failed before: a page that fails four times is one bad page. */
  function noteFailure(circuit: HostCircuit, id: string): boolean {
    circuit.failedPages ??= new Set()
    const failed = circuit.failedPages
    const isNew = !failed.delete(id) // moves it to the end
    if (failed.size >= FAILED_PAGES_MAX) failed.delete(failed.values().next().value!)
    failed.add(id)
    return isNew
  }

  function openIfBad(circuit: HostCircuit, error: unknown): void {
    const nowMs = monotonicNow()
    const failedMin = circuit.openAfter * 2 ** recentFalseAlarms(circuit)
    const all = circuit.window.read(nowMs)
    const last = circuit.window.readLast(nowMs, 2 * failedMin)
    // Regardless of its history: a site that starts to fail is noticed within a few pages, not within a minute.
    const isBadNow = last.failedInARow >= failedMin || (last.requests === 2 * failedMin && isMost(last))
    if (!isBadNow && (all.failed < failedMin || !isMost(all))) return
    const { failed, requests } = isMost(all) ? all : last
    open(circuit, `${failed} of ${requests} pages failed, the last with ${wordsOf(error)}`, error)
  }

  function circuitOf(host: string): HostCircuit {
    const known = hosts.get(host)
    if (known !== undefined) return known
    const own = openAfterOf?.(host) ?? openAfter
    const failedMin = own === 'off' ? Number.POSITIVE_INFINITY : own
    const lastMax = own === 'off' ? 0 : 2 * own * 2 ** FALSE_ALARMS_MAX
    const circuit: HostCircuit = {
      host,
      openAfter: failedMin,
      window: new RequestWindow(windowMs, lastMax),
      failedPages: undefined,
      state: 'closed',
      epoch: 0,
      untilMs: 0,
      freshUntilMs: 0,
      probes: 1,
      probesLeft: 0,
      probesFailed: 0,
      doublings: 0,
      falseAlarms: 0,
      openSinceMs: 0,
      closedAtMs: Number.NEGATIVE_INFINITY,
      reason: '',
    }
    hosts.set(host, circuit)
    return circuit
  }

  return {
    check(page) {
      const circuit = hosts.get(page.host)
      if (circuit !== undefined) mayEnter(circuit, page)
    },
    enter(page) {
      const circuit = circuitOf(page.host)
      mayEnter(circuit, page)
      if (circuit.state !== 'closed') probe(circuit)
      const { epoch } = circuit
      return { end: (error) => settle(circuit, page, epoch, error) }
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
