/**
 * The ledger of an `amqp:` or `redis:` run, for read access: broker and streams only carry tasks, so a run can be read, paused
 * and cancelled, and its dead letters retried, while a broker is down. Nothing is written until something must change, so a
 * finished run keeps its expiry date.
 */
import type { Frontier } from '../frontier/contract.ts'
import { createDead } from '../frontier/redis/dead.ts'
import { openRedisFrontier } from '../frontier/redis/engine.ts'
import { createItems } from '../frontier/redis/items.ts'
import { Link } from '../frontier/redis/link.ts'
import { getMeta } from '../frontier/redis/meta.ts'
import { openEpoch } from '../frontier/redis/runs.ts'
import { readNextDueMs, readStats } from '../frontier/redis/stats.ts'

/** A client is waiting for the answer: a server that has been down this long is reported as down. */
const OUTAGE_MS_MAX = 3_000

/** Throws `E_RUN_NOT_FOUND` if Redis does not know the run. */
export async function openLedgerToLook(url: string, runId: string): Promise<Frontier> {
  const link = new Link(url, runId, { outageMs: OUTAGE_MS_MAX })
  try {
    await openEpoch(link, { mustExist: true })
  } catch (error) {
    link.close()
    throw error
  }
  const letters = createDead(link, () => {})
  let opened: Promise<Frontier> | undefined
  /** Opened like a worker's queue: the run counts as used again, and its expiry is set again when it is closed. */
  const whole = () => (opened ??= openRedisFrontier(url, { runId, mustExist: true }))
  return {
    engine: 'redis:',
    can: { durable: true, shared: true },
    stats: () => readStats(link),
    nextDueMs: () => readNextDueMs(link),
    items: createItems(link),
    dead: {
      list: letters.list,
      groups: letters.groups,
      // Sets it to pending in the ledger, where the next claim of any worker finds it.
      retry: async (filter) => (await whole()).dead.retry(filter),
      drop: async (filter) => (await whole()).dead.drop(filter),
    },
    getMeta: (name) => getMeta(link, name),
    setMeta: async (name, value) => (await whole()).setMeta(name, value),
    pause: async (reason) => (await whole()).pause(reason),
    resume: async () => (await whole()).resume(),
    sweep: async (options) => (await whole()).sweep(options),
    extend: async (leases, leaseMs) => (await whole()).extend(leases, leaseMs),
    add: onlyLooked,
    claim: onlyLooked,
    commit: onlyLooked,
    async [Symbol.asyncDispose]() {
      const writer = await opened?.catch(() => undefined)
      await writer?.[Symbol.asyncDispose]()
      link.close()
    },
  }
}

/** Workers use another implementation. */
async function onlyLooked(): Promise<never> {
  throw new Error('a queue that was opened to be looked at gives no work and takes none')
}
