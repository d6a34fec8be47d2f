/**
 * The instances of one `sluice worker --type`: threads, or processes. An instance that dies is replaced, and its tasks are
 * available to the others at once.
 *
 *   starting ──▶ working ──stop──▶ ended
 *                   └─ died ──wait──▶ starting, under a new name
 */

import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { type BackoffLimits, doubledMs } from '../../core/backoff.ts'
import { startChild } from '../../core/child.ts'
import { systemClock } from '../../core/clock.ts'
import type { ErrorCode } from '../../core/error-table.ts'
import { ScrapeError } from '../../core/errors.ts'
import { Connection } from '../../drivers/redis/connection.ts'
import { ABANDON } from '../../protocol/redis-lua.ts'
import { streamNames, WORKERS_GROUP } from '../../protocol/streams.ts'
import { newWorkerId } from '../fleet/join-run.ts'
import type { TaskEnd } from './instance.ts'
import type { InstanceSpec } from './open-instance.ts'

export type InstanceOrder = 'stop'

export type InstanceMessage =
  | { kind: 'log'; level: 'info' | 'warn'; message: string }
  | { kind: 'task'; end: TaskEnd }
  | { kind: 'answer' }
  | { kind: 'end' }
  | { kind: 'failed'; code: ErrorCode; message: string; fix: string }

interface InstancesRequest {
  spec: Omit<InstanceSpec, 'workerId'>
  type: string
  count: number
  as: 'threads' | 'processes'
  /** Heap limit of a thread; exceeding it ends only that thread. */
  heapMbMax: number
  onLog: (message: string) => void
  onTask: (end: TaskEnd) => void
  /** Called when Redis has just answered an instance. */
  onAnswer: () => void
}

interface Instances {
  readonly workerIds: () => string[]
  /** Finish tasks in progress within the drain time, hand back the rest. */
  stop(): void
  /** Resolves when all have ended. Rejects with the error that keeps them from working. */
  readonly ended: Promise<void>
}

const ENTRY = new URL('./instance-thread.ts', import.meta.url)
const RESTART: BackoffLimits = { delayMsMin: 200, delayMsMax: 10_000 }
/** Grace period after the drain time: enough to shut down, but not for a handler that never yields its thread. */
const OVERDUE_MS = 10_000
/** Maximum number of deaths in a row without a finished task in between: the next instance would die of the same cause. */
const DEATHS_MAX = 8

/**
 * Each thread has its own heap, and V8 fills what it is given: with the flags of the command line, meant for a single process,
 * one more instance cost 59 MB at 64 requests in flight; with these it costs 43 MB (bench/job-workers.ts). The price is more
 * frequent garbage collection.
 */
const THREAD_FLAGS = [
  '--initial-old-space-size=12',
  '--min-semi-space-size=1',
  '--max-semi-space-size=2',
  '--heap-growing-percent=15',
  '--optimize-for-size',
]

/** A common interface for threads and processes. */
interface Body {
  order(order: InstanceOrder): void
  /** For an instance that does not end on its own. */
  kill(): void
  /** Why it ended, unless it ended by its own decision. */
  ended: Promise<string | undefined>
}

export function startInstances(request: InstancesRequest): Instances {
  const stopping = new AbortController()
  const bodies = new Map<string, Body>()
  let deaths = 0
  const onTask = (end: TaskEnd) => {
    deaths = 0
    request.onTask(end)
  }

  async function keepAlive(): Promise<void> {
    while (!stopping.signal.aborted) {
      const workerId = newWorkerId()
      let failure: ScrapeError | undefined
      const body = startBody({ ...request.spec, workerId }, request, (message) => {
        if (message.kind === 'log') request.onLog(`${workerId}: ${message.message}`)
        if (message.kind === 'task') onTask(message.end)
        if (message.kind === 'answer') request.onAnswer()
        if (message.kind === 'failed') failure = new ScrapeError(message.code, message.message, { fix: message.fix })
      })
      bodies.set(workerId, body)
      if (stopping.signal.aborted) body.order('stop')
      const why = await body.ended
      bodies.delete(workerId)
      if (failure !== undefined) throw failure
      if (why === undefined) return
      if (isOverdue) return request.onLog(`${workerId} did not end in time: its tasks are left to their lease`)
      request.onLog(`${workerId} died: ${why}`)
      await abandon(request, workerId).catch((error: Error) => request.onLog(error.message))
      if (++deaths >= DEATHS_MAX)
        throw new ScrapeError('E_WORKERS_DIE', `${deaths} instances died one after the other, the last one: ${why}`)
      await systemClock.sleep(doubledMs(deaths, RESTART), stopping.signal).catch(() => {})
    }
  }

  let overdue: NodeJS.Timeout | undefined
  let isOverdue = false
  const stop = () => {
    stopping.abort()
    for (const body of bodies.values()) body.order('stop')
    overdue ??= setTimeout(() => {
      isOverdue = true
      for (const body of bodies.values()) body.kill()
    }, request.spec.config.values.drainTimeout + OVERDUE_MS)
  }
  const all = Array.from({ length: request.count }, () =>
    keepAlive().catch((error) => {
      stop() // the others would fail for the same reason
      throw error
    }),
  )
  const ended = Promise.allSettled(all).then((results) => {
    clearTimeout(overdue)
    for (const result of results) if (result.status === 'rejected') throw result.reason
  })
  return { workerIds: () => [...bodies.keys()], stop, ended }
}

function startBody(spec: InstanceSpec, request: InstancesRequest, onMessage: (message: InstanceMessage) => void): Body {
  return request.as === 'threads' ? startThread(spec, request, onMessage) : startProcess(spec, onMessage)
}

function startThread(
  spec: InstanceSpec,
  { heapMbMax }: InstancesRequest,
  onMessage: (message: InstanceMessage) => void,
): Body {
  for (const flag of THREAD_FLAGS) setFlagsFromString(flag) // V8 reads them when it creates a heap, so ours is not affected
  const thread = new Worker(ENTRY, { workerData: spec, resourceLimits: { maxOldGenerationSizeMb: heapMbMax } })
  let isOver = false
  let why: string | undefined
  thread.on('message', (message: InstanceMessage) => {
    isOver ||= message.kind === 'end' || message.kind === 'failed'
    onMessage(message)
  })
  thread.on('error', (error: NodeJS.ErrnoException) => (why = error.code ?? error.message))
  const ended = new Promise<string | undefined>((resolve) =>
    thread.on('exit', (code) => resolve(isOver ? undefined : (why ?? `exit code ${code}`))),
  )
  return { order: (order) => thread.postMessage(order), kill: () => void thread.terminate(), ended }
}

function startProcess(spec: InstanceSpec, onMessage: (message: InstanceMessage) => void): Body {
  let isOver = false
  const child = startChild<InstanceOrder | { spec: InstanceSpec }, InstanceMessage>(ENTRY, {
    execArgv: process.execArgv,
    serialization: 'advanced',
    onMessage(message) {
      isOver ||= message.kind === 'end' || message.kind === 'failed'
      onMessage(message)
    },
  })
  child.send({ spec })
  const ended = child.ended.then(({ how }) => (isOver ? undefined : how))
  return { order: (order) => child.send(order), kill: () => child.kill(), ended }
}

/** Frees the tasks of an instance known to be dead, instead of waiting for their leases to expire. */
async function abandon({ spec, type }: InstancesRequest, workerId: string): Promise<void> {
  const connection = new Connection(spec.redisUrl)
  try {
    const streams = streamNames(spec.prefix).tasks(type)
    await connection.attempt(() => connection.evaluate(ABANDON, [WORKERS_GROUP, workerId, ...streams]))
  } finally {
    connection.close()
  }
}
