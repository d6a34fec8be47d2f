/** Ready tasks over streams: a claim that finds nothing waits in a blocking read until there is something for it. */
import { randomBytes } from 'node:crypto'
import type { ClaimRequest, Lease } from '../contract.ts'
import type { Link } from '../redis/link.ts'
import type { ReadyTransport } from '../redis/transport.ts'
import { claimOnce } from './claim.ts'
import { tidyConsumers } from './consumers.ts'
import { waitForWake } from './wake.ts'

export interface StreamsTransportOptions {
  /**
   * How long a claim waits if there is nothing for it and its worker holds no leases: well below 10,000, after which a connection
   * counts as silent. Default 1000; 0: not at all.
   */
  waitMs?: number
}

interface StreamsTransportParts {
  link: Link
  /** A second connection: a blocking read would block everything else on the first one. */
  waiter: Link
}

const WAIT_MS = 1000

export function streamsTransport(
  { link, waiter }: StreamsTransportParts,
  { waitMs = WAIT_MS }: StreamsTransportOptions = {},
): ReadyTransport {
  const client = randomBytes(9).toString('base64url')
  const workers = new Set<string>()
  let isWaiting = false
  let waits = 0

  async function claim(request: ClaimRequest): Promise<Lease[]> {
    if (request.max < 1) return []
    workers.add(request.workerId)
    // One wait at a time on the second connection; another claim of this process does not wait and is repeated by its caller.
    if (isWaiting) return (await claimOnce(link, request, { note: '', waitMs: 0 })).leases
    isWaiting = true
    try {
      return await claimOrWait(request)
    } finally {
      isWaiting = false
    }
  }

  async function claimOrWait(request: ClaimRequest): Promise<Lease[]> {
    const endMs = performance.now() + waitMs
    for (let over: string | undefined; ; ) {
      const note = `${client}.${++waits}`
      const leftMs = Math.max(0, endMs - performance.now())
      const { leases, waitsMs } = await claimOnce(link, request, { note, over, waitMs: leftMs })
      if (leases.length > 0 || waitsMs === 0) return leases
      const how = await waitForWake(waiter, request.lanes, waitsMs)
      // An id registered in several lanes was removed from only one of them.
      over = how === 'woken' && request.lanes === undefined ? undefined : note
      // A shortened wait ends when a task is due; after a full one there is still nothing.
      if (how === 'failed' || (how === 'late' && waitsMs >= Math.floor(leftMs))) return []
    }
  }

  return {
    claim,
    fed() {},
    over() {},
    died() {},
    async readToEnd() {},
    async close() {
      waiter.close()
      if (link.redis.status === 'ready') await tidyConsumers(link, [...workers]).catch(() => {})
    },
  }
}
