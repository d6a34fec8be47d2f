/**
 * The target size of a pool: file workers, browser pages. Only the decision; `scaling-keep.ts` has it carried out.
 *
 *   grow      more than `growAbove` queued, all busy, and the machine has room: by a quarter, at least by one
 *   shrink    fewer than `shrinkBelow` queued and some idle, for all of `shrinkCooldownMs`: to the peak of busy ones in that time
 *   release   less memory free than the reserve: half of the idle ones, without waiting for them to be idle for long
 *   bounds    below `min` or above `max`: to the bound, at once. `min` is kept whatever the machine says, so that work continues
 *
 * What keeps it from flapping: the two thresholds are apart; after any change only a bound can cause another for
 * `growCooldownMs`; idle time is counted from zero after each change; growing needs room for a whole worker above the reserve;
 * and after memory was released, nothing grows for `shrinkCooldownMs`.
 */

export interface SizePolicy {
  min: number
  max: number
  growAbove: number
  shrinkBelow: number
  growCooldownMs: number
  shrinkCooldownMs: number
}

export const SIZE_POLICY: Readonly<SizePolicy> = {
  min: 1,
  max: 8,
  growAbove: 10,
  shrinkBelow: 3,
  growCooldownMs: 5000,
  shrinkCooldownMs: 30_000,
}

/** The current state of the pool. */
export interface Load {
  /** Includes those being started, but not those being stopped. */
  size: number
  busy: number
  /** Tasks that could be processed now; those not due yet do not count. */
  queued: number
}

/** What the machine allows. */
export interface Room {
  /** Why nothing new is started; undefined if something may be. */
  refusal: string | undefined
  /** How many more fit. */
  capacity: number
  /** Less memory is free than the reserve. */
  isMemoryShort: boolean
}

/** State kept between decisions. */
interface SizeMemory {
  changedAtMs: number
  /** No growth before this time: memory was short. */
  growAtMs: number
  /** Since when there are idle ones and little to do, and the peak of busy ones since then. */
  low: { sinceMs: number; busyMax: number } | undefined
}

interface SizeDecision {
  size: number
  isChanged: boolean
  /** More would be needed, but the machine has no room for it. */
  isRefused: boolean
  /** For display. Undefined if there was nothing to decide. */
  reason: string | undefined
  memory: SizeMemory
}

export const NO_SIZE_MEMORY: SizeMemory = {
  changedAtMs: Number.NEGATIVE_INFINITY,
  growAtMs: Number.NEGATIVE_INFINITY,
  low: undefined,
}

export function decideSize(
  state: Load & Room,
  policy: Readonly<SizePolicy>,
  before: SizeMemory,
  nowMs: number,
): SizeDecision {
  const memory = { ...before, low: lowOf(state, policy, before, nowMs) }
  const { size } = state
  const stay = (reason?: string, isRefused = false): SizeDecision => ({
    size,
    isChanged: false,
    isRefused,
    reason,
    memory,
  })
  const become = (to: number, reason: string, growAtMs = memory.growAtMs): SizeDecision =>
    to === size
      ? stay()
      : {
          size: to,
          isChanged: true,
          isRefused: false,
          reason,
          memory: { changedAtMs: nowMs, growAtMs, low: undefined },
        }

  if (size < policy.min) return become(policy.min, `${policy.min} at least`)
  if (size > policy.max) return become(policy.max, `${policy.max} at most`)
  const isCooling = nowMs - before.changedAtMs < policy.growCooldownMs
  if (wantsMore(state, policy)) {
    const wish = `${state.queued} queued, all ${size} busy`
    if (size >= policy.max) return stay(`${wish}, but ${policy.max} are the most`)
    if (state.refusal !== undefined) return stay(`${wish}, but ${state.refusal}`, true)
    if (state.capacity < 1) return stay(`${wish}, but there is no room for another`, true)
    if (nowMs < memory.growAtMs) return stay(`${wish}, but memory was short just now`)
    if (isCooling) return stay(`${wish}, but the last change was just now`)
    const step = Math.max(1, Math.floor(size / 4))
    return become(Math.min(policy.max, size + Math.min(step, Math.floor(state.capacity))), wish)
  }
  const idle = Math.max(0, size - Math.max(state.busy, policy.min))
  if (state.isMemoryShort && idle > 0 && !isCooling) {
    const reason = `${state.refusal ?? 'memory is short'}; ${idle} of ${size} idle`
    return become(size - Math.ceil(idle / 2), reason, nowMs + policy.shrinkCooldownMs)
  }
  if (memory.low !== undefined && nowMs - memory.low.sinceMs >= policy.shrinkCooldownMs && !isCooling) {
    const { busyMax } = memory.low
    const seconds = Math.round(policy.shrinkCooldownMs / 1000)
    return become(
      Math.max(policy.min, busyMax),
      `no more than ${busyMax} busy for ${seconds} s, ${state.queued} queued`,
    )
  }
  return stay()
}

/** An empty pool has no busy workers, so the first task is enough: ten must not wait for an eleventh. */
function wantsMore({ size, busy, queued }: Load, policy: Readonly<SizePolicy>): boolean {
  return busy >= size && queued > (size === 0 ? 0 : policy.growAbove)
}

function lowOf(
  { size, busy, queued }: Load,
  policy: Readonly<SizePolicy>,
  { low }: SizeMemory,
  nowMs: number,
): SizeMemory['low'] {
  if (queued >= policy.shrinkBelow || busy >= size) return undefined
  return { sinceMs: low?.sinceMs ?? nowMs, busyMax: Math.max(low?.busyMax ?? 0, busy) }
}
