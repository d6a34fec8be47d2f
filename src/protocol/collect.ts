/**
 * The orchestrator's side: stores results from the stream, each task once, then acknowledges. A crash in between repeats a
 * message, which changes nothing.
 */
import type { NewStoredRun, Store } from '../store/contract.ts'
import { FINAL_STATUSES, MESSAGE_BYTES_MAX, type ResultMessage, readMessage, resultSchema } from './messages.ts'
import { type Entry, GroupReader } from './redis-group-reader.ts'
import { refusalText } from './refusal.ts'
import { itemsOf, runOfResult } from './run-of-result.ts'
import { COLLECTORS_GROUP, streamNames } from './streams.ts'

interface CollectOptions {
  redisUrl: string
  prefix?: string
  store: Store
  /** Id of this collector; several may share the work. */
  collectorId: string
  /** Where the streams are, for display: without a password. */
  place: string
  /** How long another collector may be silent before its messages are taken over. Default 60,000. */
  leaseMs?: number
  /** Ends when nothing is left instead of waiting for more. */
  isOnce?: boolean
  onResult?: (result: ResultMessage, stored: Stored) => void
  onRefused?: (entry: Entry, reason: string) => void
  onOutage?: (message: string) => void
}

/** known: a result of the same task is already stored, this one or another; nothing changed. */
type Stored = 'stored' | 'known' | 'passed over'

const READ_AT_ONCE = 50
const BLOCK_MS = 1_000
const TAKE_OVER_EVERY_MS = 2_000
const TRIM_EVERY_MS = 10_000
/** Clients that wait for one result read the stream too, and may be a little behind us. */
const KEEP_MS = 60_000

export async function collectResults(options: CollectOptions, stop: AbortSignal): Promise<void> {
  const names = streamNames(options.prefix)
  const leaseMs = options.leaseMs ?? 60_000
  using reader = new GroupReader({
    url: options.redisUrl,
    names,
    streams: [names.results],
    group: COLLECTORS_GROUP,
    consumer: options.collectorId,
    leaseMs,
    onOutage: ({ error }) => options.onOutage?.(`Redis is away (${error.message}): waiting for it`),
  })
  await reader.open()
  const every = createEvery()
  let held: Entry[] = []
  try {
    while (!stop.aborted) {
      if (every('take over', TAKE_OVER_EVERY_MS)) held = await reader.takeOver(READ_AT_ONCE)
      if (held.length === 0) held = await reader.read(READ_AT_ONCE, options.isOnce ? 0 : BLOCK_MS)
      if (held.length === 0 && options.isOnce) return
      while (held.length > 0 && !stop.aborted) {
        await settle(reader, held[0]!, options)
        held.shift()
        if (every('renew', leaseMs / 3)) await reader.renew()
      }
      if (every('trim', TRIM_EVERY_MS)) await reader.trim(KEEP_MS)
    }
  } finally {
    await reader.release(held).catch(() => {}) // for the next collector; otherwise it would have to wait for the lease
  }
}

async function settle(reader: GroupReader, entry: Entry, options: CollectOptions): Promise<void> {
  const read = readMessage(resultSchema, entry.message, MESSAGE_BYTES_MAX.result)
  if (!read.ok) {
    options.onRefused?.(entry, read.reason)
    await reader.finish(entry, { error: refusalText(entry, read.reason, options.collectorId) })
    return
  }
  const stored = await storeResult(options.store, read.value, options.place)
  await reader.acknowledge(entry)
  options.onResult?.(read.value, stored)
}

/** Safe to repeat. */
export async function storeResult(store: Store, result: ResultMessage, place: string): Promise<Stored> {
  if (!FINAL_STATUSES.includes(result.status)) return 'passed over'
  const run = runOfResult(result, place)
  const state = await begin(store, run)
  if (state === 'of another') return 'known'
  const changes = await store.putItems(run.record.id, itemsOf(result))
  // A part may arrive after the last one; it counts as known only if it brings nothing new.
  if (state === 'complete' && !changes.includes('new')) return 'known'
  // Parts are on the stream in order; if several collectors share them, the last may be stored before another one.
  if (result.part === undefined || result.part.number === result.part.of) await store.saveRun(run.record, ['running'])
  return 'stored'
}

/** The run's row is created first: it decides which of two results counts. */
async function begin(store: Store, run: NewStoredRun): Promise<'open' | 'complete' | 'of another'> {
  const { id } = run.record
  const stateOf = ({ definitionHash, record }: NewStoredRun) => {
    if (definitionHash !== run.definitionHash) return 'of another'
    return record.state === 'running' ? 'open' : 'complete'
  }
  const known = await store.findRun(id)
  if (known !== undefined) return stateOf(known)
  try {
    await store.createRun({ ...run, record: { ...run.record, state: 'running', reason: 'its result is being stored' } })
    return 'open'
  } catch (error) {
    const other = await store.findRun(id) // another collector was faster
    if (other === undefined) throw error
    return stateOf(other)
  }
}

/** True if `ms` have passed since it was last true for this name. */
function createEvery(): (name: string, ms: number) => boolean {
  const last = new Map<string, number>()
  return (name, ms) => {
    const nowMs = performance.now()
    if (nowMs - (last.get(name) ?? Number.NEGATIVE_INFINITY) < ms) return false
    last.set(name, nowMs)
    return true
  }
}
