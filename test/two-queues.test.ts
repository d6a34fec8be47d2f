/** Processes with different queues on one store: a run is only ever accessed through its own queue. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { until } from './fleet.ts'
import { startRedis } from './services/redis.ts'
import { startBooksSite } from './site/books.ts'
import { type SluiceResult, sluice, temporaryFolder } from './sluice.ts'

interface Listed {
  id: string
  state: string
  remaining: number
  why: string | null
}

test('processes with another queue do not touch a run, and say where it is', { timeout: 300_000 }, async () => {
  await using redis = await startRedis()
  await using site = await startBooksSite({ products: 20 })
  using folder = temporaryFolder()
  const at = (frontier: string) => {
    const env = { SLUICE_FRONTIER: frontier }
    return (...args: string[]): Promise<SluiceResult> => sluice(args, { env, cwd: folder.path })
  }
  const own = at(`redis://localhost:${redis.port}`)
  // Another database; and another engine whose ledger would be the very same keys, and whose broker is never contacted.
  const others = [at(`redis://127.0.0.1:${redis.port}/1`), at(`amqp://user:geheim@127.0.0.1:1/?redis=${redis.url}`)]
  const started = await own('start', 'books', '--mode', 'distributed', '--site', site.url, '--json')
  assert.equal(started.code, 0, started.stderr)
  const { run_id: runId } = JSON.parse(started.stdout) as { run_id: string }
  const place = new RegExp(`in another queue: redis://localhost:${redis.port}`)

  for (const [i, other] of others.entries()) {
    let run: Listed | undefined
    await until('ps has had the time to look', async () => {
      run = (JSON.parse((await other('ps', '--json')).stdout) as { runs: Listed[] }).runs[0]
      return !run!.why!.startsWith('no answer within')
    })
    assert.deepEqual([run!.id, run!.state, run!.remaining], [runId, 'running', 1], run!.why!)
    assert.match(run!.why!, place)
    const stats = await other('stats', runId, '--json')
    const numbers = JSON.parse(stats.stdout) as { remaining: number; reason: string }
    assert.equal(numbers.remaining, 1)
    assert.match(numbers.reason, place)
    const more = [
      () => other('worker', '--scraper', 'books', '--run-id', runId),
      () => other('produce', '--scraper', 'books', '--run-id', runId, '--url', site.url),
      () => other('retry', runId, '--failed'),
      () => other('dlq', 'groups', runId),
      () => other('pause', runId),
      () => other('resume', runId),
    ]
    const refused = await Promise.all([
      other('worker', '--scraper', 'books'),
      other('start', 'books', '--mode', 'distributed', '--resume', runId),
      other('start', 'books', '--mode', 'distributed', '--resume'),
      other('cancel', runId),
      ...(i === 0 ? more.map((ask) => ask()) : []),
    ])
    for (const { code, stdout, stderr } of refused) {
      assert.equal(code, 2, stdout + stderr)
      assert.match(stderr, /E_OTHER_QUEUE/)
      assert.match(stderr, place)
      assert.doesNotMatch(stdout + stderr, /geheim/)
    }
    if (i > 0) continue
    const any = await other('worker', '--scraper', 'books', '--scraper', 'demo')
    assert.match(any.stderr, /no run has work for this worker/)
    const scaled = await other('autoscale', '--scraper', 'books', '--print', '--interval', '100ms')
    assert.equal(scaled.code, 2, scaled.stdout)
    assert.match(scaled.stderr, place)
  }
  const client = new Redis(redis.port, { db: 1 })
  const made = await client.keys('*')
  client.disconnect()
  assert.deepEqual(made, [], 'nothing was made where the run is not')

  // The same server by another name is the same queue.
  const alias = at(`redis://127.0.0.1:${redis.port}/0`)
  const { code, stderr } = await alias('worker', '--scraper', 'books', '--rps', '0')
  assert.equal(code, 0, stderr)
  const [finished] = (JSON.parse((await own('ps', '--all', '--json')).stdout) as { runs: Listed[] }).runs
  assert.deepEqual([finished!.state, finished!.remaining], ['finished', 0])
})
