/**
 * The process side of the pool: takes jobs from the channel, works on several at once, asks its owner questions, returns results.
 */
import { every } from '../core/every.ts'
import type { FileJob } from './contract.ts'
import { fromSentError, type Question, toSentError, type WorkerChannel } from './messages.ts'
import { tidySpool } from './spool.ts'
import { type WorkerParts, workOn } from './worker.ts'

/** How often leftovers of old tries in the spool are cleaned up. */
const TIDY_MS = 600_000

/** Returns at once; jobs are taken until the process ends. The entry (app/run/file-process.ts) provides the parts. */
export function serveFileJobs(parts: WorkerParts, channel: WorkerChannel): void {
  const running = new Map<number, AbortController>()
  const asked = new Map<number, { resolve: (value: string | undefined) => void; reject: (error: unknown) => void }>()
  let asks = 0

  const ask = (id: number, question: Question, signal: AbortSignal) =>
    new Promise<string | undefined>((resolve, reject) => {
      const number = ++asks
      const onAbort = () => end(() => reject(signal.reason))
      const end = (settle: () => void) => {
        asked.delete(number)
        signal.removeEventListener('abort', onAbort)
        settle()
      }
      asked.set(number, {
        resolve: (value) => end(() => resolve(value)),
        reject: (error) => end(() => reject(error)),
      })
      signal.addEventListener('abort', onAbort)
      channel.send({ kind: 'ask', ask: number, id, question })
    })

  async function take(id: number, job: FileJob): Promise<void> {
    const controller = new AbortController()
    running.set(id, controller)
    const { signal } = controller
    const asks = {
      onRedirect: async (url: string) => void (await ask(id, { what: 'redirect', url }, signal)),
      findStored: (sha256: string, place: string) => ask(id, { what: 'known', sha256, place }, signal),
      onReceived: () => channel.send({ kind: 'received', id }),
      beforeStore: async () => void (await ask(id, { what: 'store' }, signal)),
    }
    try {
      channel.send({ kind: 'done', id, stored: await workOn(job, parts, asks, signal) })
    } catch (error) {
      channel.send({ kind: 'failed', id, error: toSentError(error) })
    } finally {
      running.delete(id)
    }
  }

  channel.onMessage((message) => {
    switch (message.kind) {
      case 'job':
        return void take(message.id, message.job)
      case 'abort':
        return running.get(message.id)?.abort(new Error('the job is not wanted any more'))
      case 'answer': {
        const { resolve, reject } = asked.get(message.ask) ?? {}
        return message.error === undefined ? resolve?.(message.value) : reject?.(fromSentError(message.error))
      }
      case 'ping':
        return channel.send({ kind: 'pong' })
      case 'open':
        return
      default:
        message satisfies never
    }
  })
  const tidy = () => void tidySpool(parts.spool, parts.spoolLimits).catch(() => {})
  tidy()
  every(tidy, TIDY_MS).unref()
}
