/** The server goes down and comes back, or an answer is lost: the run continues, and nothing is done or counted twice. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { postgresForTests, startPostgres } from '../../../test/services/postgres.ts'
import { ScrapeError } from '../../core/errors.ts'
import type { NewTask } from '../../core/task.ts'
import type { Outage } from '../../drivers/outage.ts'
import type { Frontier } from '../contract.ts'
import { cuttingProxy } from './cutting-proxy.test-kit.ts'
import { openPostgresFrontier } from './engine.ts'

const database = await postgresForTests()
after(() => database[Symbol.asyncDispose]())

const LEASE_MS = 60_000
const pages = (count: number): NewTask[] =>
  Array.from({ length: count }, (_, n) => ({ url: `https://a.example/${n}`, route: 'page', depth: 0 }))

test('repeats the first answer to a commit if it was lost', async () => {
  await using proxy = await cuttingProxy(database.url)
  const outages: Outage[] = []
  const onOutage = (info: Outage) => void outages.push(info)
  await using frontier = await openPostgresFrontier(proxy.url, { runId: 'commit', onOutage })
  await frontier.add(pages(6))
  const [first, second, third, stale] = await frontier.claim({ max: 4, workerId: 'w', leaseMs: LEASE_MS })
  await frontier.commit([{ kind: 'done', lease: stale! }])
  proxy.loseAnswerTo('sluice.commit')
  const committed = await frontier.commit([
    { kind: 'done', lease: first!, items: [{ key: 'a', json: '1' }], tasks: pages(9) },
    { kind: 'done', lease: stale!, items: [{ key: 'late', json: '1' }] },
    { kind: 'retry', lease: second!, atMs: 0, error: { code: 'E_SERVER', class: 'server-error', message: 'x' } },
    { kind: 'postpone', lease: third!, atMs: 0, reason: 'drain' },
  ])
  assert.equal(proxy.cuts, 1)
  assert.deepEqual([outages.length, outages[0]?.attempt], [1, 1])
  assert.deepEqual(committed, {
    settled: 3,
    stale: [stale],
    added: 3,
    seen: 6,
    items: { new: 1, same: 0, changed: 0, backlog: 1 },
  })
  const { pending, claimed, completed, items, seen } = await frontier.stats()
  assert.deepEqual(
    { pending, claimed, completed, items, seen },
    { pending: 7, claimed: 0, completed: 2, items: 1, seen: 9 },
  )
})

test('repeats the first answer to an add if it was lost', async () => {
  await using proxy = await cuttingProxy(database.url)
  await using frontier = await openPostgresFrontier(proxy.url, { runId: 'add' })
  proxy.loseAnswerTo('sluice.add')
  assert.deepEqual(await frontier.add(pages(5)), { added: 5, seen: 0 })
  assert.equal(proxy.cuts, 1)
  assert.equal((await frontier.stats()).pending, 5)
})

test('gives the same leases again, and no others, if the first answer to a claim was lost', async () => {
  await using proxy = await cuttingProxy(database.url)
  await using frontier = await openPostgresFrontier(proxy.url, { runId: 'claim' })
  await frontier.add(pages(8))
  proxy.loseAnswerTo('sluice.claim')
  const leases = await frontier.claim({ max: 5, workerId: 'w', leaseMs: LEASE_MS })
  assert.equal(proxy.cuts, 1)
  assert.equal(leases.length, 5)
  assert.equal((await frontier.stats()).claimed, 5)
  const { settled } = await frontier.commit(leases.map((lease) => ({ kind: 'done', lease })))
  assert.equal(settled, 5)
})

/** Claims and completes until nothing is left. */
async function workOff(frontier: Frontier, workerId: string, onBatch: () => void = () => {}): Promise<number> {
  let settled = 0
  for (;;) {
    const leases = await frontier.claim({ max: 5, workerId, leaseMs: LEASE_MS })
    if (leases.length === 0 && (await frontier.stats()).remaining === 0) return settled
    settled += (await frontier.commit(leases.map((lease) => ({ kind: 'done', lease })))).settled
    onBatch()
  }
}

test('continues after the server was stopped and started in the middle of a run', async () => {
  await using server = await startPostgres({ fsync: true })
  await using place = await server.createDatabase()
  const outages: Outage[] = []
  const options = { runId: 'restart', onOutage: (info: Outage) => void outages.push(info) }
  await using one = await openPostgresFrontier(place.url, options)
  await using two = await openPostgresFrontier(place.url, options)
  await one.add(pages(1500))
  let batches = 0
  const stops: Promise<void>[] = []
  const onBatch = () => {
    batches++
    if (batches === 30) stops.push(server.restart('fast'))
    if (batches === 120) stops.push(stops[0]!.then(() => server.restart('immediate')))
  }
  const settled = await Promise.all([workOff(one, 'a', onBatch), workOff(two, 'b', onBatch)])
  await Promise.all(stops)
  assert.equal(stops.length, 2)
  assert.ok(outages.length > 0, 'somebody was told')
  assert.equal(settled[0] + settled[1], 1500, 'each page was settled once, and its worker knows')
  const { completed, seen } = await one.stats()
  assert.deepEqual({ completed, seen }, { completed: 1500, seen: 1500 })
})

test('gives up after `outageMs` and names the place, never the password', async () => {
  const server = await startPostgres()
  const url = new URL(server.url)
  url.password = 'secret-word'
  await using frontier = await openPostgresFrontier(url.href, { outageMs: 300 })
  await server[Symbol.asyncDispose]()
  await assert.rejects(frontier.stats(), (error) => isService(error, `127.0.0.1:${server.port}/postgres`))
  await assert.rejects(openPostgresFrontier(url.href, { outageMs: 0 }), (error) =>
    isService(error, `127.0.0.1:${server.port}/postgres`),
  )
})

test('reports at once an error that waiting cannot fix', async () => {
  const url = new URL(database.url)
  url.pathname = '/no_such_database'
  await assert.rejects(openPostgresFrontier(url.href), (error) => isService(error, 'no_such_database'))
  await assert.rejects(openPostgresFrontier('postgres://['), { code: 'E_OPTION' })
})

function isService(error: unknown, place: string): boolean {
  assert.ok(error instanceof ScrapeError)
  assert.equal(error.code, 'E_SERVICE')
  assert.ok(error.message.includes(place), error.message)
  assert.ok(!JSON.stringify([error.message, String(error.cause), error.details]).includes('secret-word'))
  return true
}
