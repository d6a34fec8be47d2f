/**
 * Whether one dead receiver holds up the others: 1,000 deliveries to 20 receivers, one of which accepts every connection and
 * never responds. Reports how long the live ones waited.
 *
 *   node bench/webhooks.ts [--deliveries 1000] [--receivers 20] [--store postgres://…] [--json]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { SqlDatabase } from '../src/drivers/sql.ts'
import { openPoster } from '../src/fetch/http/post.ts'
import { DeliveryWorker } from '../src/server/webhooks/delivery-worker.ts'
import { Outbox } from '../src/server/webhooks/outbox.ts'
import { eventRecorder } from '../src/server/webhooks/record.ts'
import { Subscriptions } from '../src/server/webhooks/subscriptions.ts'

const GIVE_UP_MS = 60_000

interface Told {
  server: Server
  url: string
  atMs: number[]
}

async function startReceiver(isDead: boolean): Promise<Told> {
  const atMs: number[] = []
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      atMs.push(performance.now())
      if (!isDead) response.writeHead(204).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, atMs }
}

async function openStore(url: string | undefined, folder: string): Promise<SqlDatabase> {
  if (url === undefined) {
    const { openSqliteDatabase } = await import('../src/store/sqlite.ts')
    return openSqliteDatabase(join(folder, 'store.db'))
  }
  const { openPostgresDatabase } = await import('../src/store/postgres.ts')
  return await openPostgresDatabase(url, { connectionsMax: 6 })
}

export async function benchWebhooks(options: { deliveries: number; receivers: number; store?: string | undefined }) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const db = await openStore(options.store, folder)
  const receivers = await Promise.all(Array.from({ length: options.receivers }, (_, i) => startReceiver(i === 0)))
  const [dead, ...live] = receivers as [Told, ...Told[]]
  const subscriptions = new Subscriptions(db)
  const record = eventRecorder({ dialect: db.dialect })
  const each = Math.ceil(options.deliveries / options.receivers)
  for (const [i, { url }] of receivers.entries())
    await subscriptions.create({ name: `to ${i}`, url, events: ['*'], filter: {}, mode: 'instant', isActive: true })
  const events = Array.from({ length: each }, (_, i) => ({
    type: 'run.finished' as const,
    data: { scraper: 'books', runId: String(i) },
    dedupeKey: `bench ${i}`,
  }))
  const poster = openPoster({ userAgent: 'bench', connectTimeoutMs: 5000, allowPrivate: true, allowAddresses: [] })
  const worker = new DeliveryWorker({
    outbox: new Outbox(db, { holder: 'bench', record }),
    post: poster.post,
    say: () => {},
    isAlone: options.store === undefined,
  })
  const startedMs = performance.now()
  await db.transaction((rows) => record(rows, events))
  const recordedMs = performance.now()
  const wanted = each * live.length
  const arrived = () => live.reduce((sum, { atMs }) => sum + atMs.length, 0)
  while (arrived() < wanted && performance.now() - startedMs < GIVE_UP_MS) {
    await worker.look()
    await sleep(2)
  }
  const times = live.flatMap(({ atMs }) => atMs.map((ms) => ms - startedMs)).sort((a, b) => a - b)
  const result = {
    recordMs: recordedMs - startedMs,
    delivered: times.length,
    wanted,
    triedDead: dead.atMs.length,
    p50Ms: times[Math.floor(times.length / 2)] ?? 0,
    p99Ms: times[Math.floor(times.length * 0.99)] ?? 0,
    lastMs: times.at(-1) ?? 0,
  }
  await worker[Symbol.asyncDispose]()
  await poster[Symbol.asyncDispose]()
  for (const { server } of receivers) {
    server.closeAllConnections()
    server.close()
  }
  await db.close()
  rmSync(folder, { recursive: true, force: true })
  return result
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      deliveries: { type: 'string', default: '1000' },
      receivers: { type: 'string', default: '20' },
      store: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  })
  const row = await benchWebhooks({
    deliveries: Number(values.deliveries),
    receivers: Number(values.receivers),
    store: values.store,
  })
  if (values.json) console.log(JSON.stringify(row))
  else
    console.log(
      `recorded in ${row.recordMs.toFixed(0)} ms · ${row.delivered} of ${row.wanted} to the live ones: ` +
        `p50 ${row.p50Ms.toFixed(0)} ms, p99 ${row.p99Ms.toFixed(0)} ms, last ${row.lastMs.toFixed(0)} ms · ` +
        `the dead one was tried ${row.triedDead} time${row.triedDead === 1 ? '' : 's'}`,
    )
}
