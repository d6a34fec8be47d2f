/** A file worker in its own process: receives its configuration and jobs from the pool, and ends with it. */
import { mkdir } from 'node:fs/promises'
import { type ByteStreamOptions, openByteStream } from '../../fetch/http/byte-stream.ts'
import type { FileStep } from '../../files/contract.ts'
import { type FromWorker, type ToWorker, toSentError } from '../../files/messages.ts'
import { openFileStore } from '../../files/open-store.ts'
import type { SpoolLimits } from '../../files/spool.ts'
import { openSteps, type StepName } from '../../files/steps.ts'
import { serveFileJobs } from '../../files/worker-channel.ts'

/** Pool → process, once. */
export interface FileOrders {
  /** A folder, `file:///…` or `s3://BUCKET/PREFIX?…`. */
  store: string
  /** A folder, ideally on the same disk as the store. */
  spool: string
  spoolLimits?: SpoolLimits
  bytesMax: number
  http: Omit<ByteStreamOptions, 'lookup' | 'now'>
  steps: readonly StepName[]
}

process.on('SIGINT', () => {}) // Ctrl-C and a service manager's stop signal reach the whole group; the pool's owner decides
process.on('SIGTERM', () => {})
process.on('disconnect', () => process.exit(0)) // told to end, or orphaned; partial downloads are kept in any case

const waiting: ToWorker[] = []
const listeners: ((message: ToWorker) => void)[] = []
process.on('message', (message: ToWorker) => {
  if (message.kind === 'open') void open(message.orders as FileOrders)
  else if (listeners.length === 0) waiting.push(message)
  else for (const listener of listeners) listener(message)
})

async function open({ store, spool, spoolLimits, bytesMax, http, steps }: FileOrders): Promise<void> {
  try {
    await mkdir(spool, { recursive: true })
    const opened: FileStep[] = openSteps(steps)
    const parts = { source: openByteStream(http), store: await openFileStore(store), spool, spoolLimits, bytesMax }
    serveFileJobs(
      { ...parts, steps: opened },
      {
        send,
        onMessage: (listener) => {
          listeners.push(listener)
          for (const message of waiting.splice(0)) listener(message)
        },
      },
    )
    send({ kind: 'ready' })
  } catch (error) {
    process.send?.({ kind: 'broken', error: toSentError(error) } satisfies FromWorker, () => process.exit(1))
  }
}

function send(message: FromWorker): void {
  // The callback keeps a parent that dies at this moment from causing an unhandled error.
  if (process.connected) process.send?.(message, () => {})
}
