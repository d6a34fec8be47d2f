/** Adjusts a pool, or the size of a batch, to the machine and the queue, with every sample of the monitor. */
import type { EventBus, EventOf } from '../core/events.ts'
import type { ResourceMonitor, ResourceSnapshot } from './resources.ts'
import {
  batchSize,
  isMemoryShort,
  mayStart,
  RESOURCE_POLICY,
  type WorkerNeed,
  workerCapacity,
} from './resources-policy.ts'
import { decideSize, type Load, NO_SIZE_MEMORY, type Room, type SizePolicy } from './scaling.ts'

interface KeepSizedOptions {
  what: EventOf<'scaled'>['what']
  policy: Readonly<SizePolicy>
  need: WorkerNeed
  /** Must be cheap: called once per sample. */
  look: () => Load
  /** Sets the target size; the pool starts and stops workers by itself. From then on, `look` returns the new size. */
  resize: (size: number) => void
  monitor: Pick<ResourceMonitor, 'onSample'>
  events: Pick<EventBus, 'emit'>
}

/** Has no timer of its own. Every change is a `scaled` event; refused growth is logged, once per cooldown. */
export function keepSized(options: KeepSizedOptions): Disposable {
  const { what, policy, need, look, resize, monitor, events } = options
  let memory = NO_SIZE_MEMORY
  let refusedAtMs = Number.NEGATIVE_INFINITY
  const stop = monitor.onSample((snapshot) => {
    const load = look()
    const from = load.size // `load` may be the pool itself, which `resize` changes
    const nowMs = snapshot.atMs
    const decision = decideSize({ ...load, ...roomFor(snapshot, need) }, policy, memory, nowMs)
    memory = decision.memory
    const reason = decision.reason ?? ''
    if (decision.isChanged) {
      resize(decision.size)
      events.emit({ type: 'scaled', what, from, to: decision.size, reason })
    } else if (decision.isRefused && nowMs - refusedAtMs >= policy.shrinkCooldownMs) {
      refusedAtMs = nowMs
      events.emit({ type: 'log', level: 'info', message: `${what} stay at ${from}: ${reason}` })
    }
  })
  return { [Symbol.dispose]: stop }
}

function roomFor(snapshot: ResourceSnapshot, need: WorkerNeed): Room {
  const { policy = RESOURCE_POLICY } = need
  return {
    refusal: mayStart(snapshot, policy),
    capacity: workerCapacity(snapshot, need),
    isMemoryShort: isMemoryShort(snapshot, policy),
  }
}

interface KeepBatchOptions {
  /** The size on an otherwise idle machine. */
  base: number
  monitor: Pick<ResourceMonitor, 'onSample'>
  events: Pick<EventBus, 'emit'>
  /** How long a larger batch must have been appropriate before it is used. Default: 10,000. */
  growCooldownMs?: number
}

/** Shrinks at once, grows only after a while: at a threshold, a bare `batchSize` would flap. */
export function keepBatch({ base, monitor, events, growCooldownMs = 10_000 }: KeepBatchOptions): KeptBatch {
  let size = base
  let larger: { sinceMs: number; size: number } | undefined
  const change = (to: number, { cpu, memory }: ResourceSnapshot) => {
    const reason = `CPU at ${Math.round(cpu.smoothed * 100)} %, memory at ${Math.round(memory.usage * 100)} %`
    events.emit({ type: 'scaled', what: 'batch', from: size, to, reason })
    size = to
    larger = undefined
  }
  const onSample = (snapshot: ResourceSnapshot) => {
    const right = batchSize(snapshot, base)
    if (right === size) larger = undefined
    else if (right < size) change(right, snapshot)
    else {
      larger = { sinceMs: larger?.sinceMs ?? snapshot.atMs, size: Math.min(larger?.size ?? right, right) }
      if (snapshot.atMs - larger.sinceMs >= growCooldownMs) change(larger.size, snapshot)
    }
  }
  const stop = monitor.onSample(onSample)
  return { size: () => size, [Symbol.dispose]: stop }
}

export interface KeptBatch extends Disposable {
  size(): number
}
