/** Which events are delivered to whom, on both databases, to real receivers, with a manual clock. */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { type Received, Receiver } from '../../../test/site/receiver.ts'
import { Bench, event, onBothDatabases, START } from '../../../test/webhooks.ts'
import { eventRecorder } from './record.ts'
import { Subscriptions } from './subscriptions.ts'

const SECOND = 1000
const HOUR = 3_600_000
const DAY = 24 * HOUR

onBothDatabases('webhooks', ({ check }) => {
  check('an event is delivered once, signed, to each subscription that wants it', async (db) => {
    await using receiver = await Receiver.start()
    await using bench = new Bench(db)
    const { secret, subscription } = await bench.subscribe(receiver.url, { events: ['run.*'] })
    await bench.record({ type: 'run.failed', data: { scraper: 'books' } }, { type: 'schedule.missed' })
    await bench.lookAt(START)
    await bench.lookAt(START + SECOND)
    assert.deepEqual(receiver.types, ['run.failed'])
    const [{ headers, body, id }] = receiver.received as [Received]
    const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
    const hmac = createHmac('sha256', key).update(`${id}.${headers['webhook-timestamp']}.${body}`).digest('base64')
    assert.equal(headers['webhook-signature'], `v1,${hmac}`)
    assert.equal(headers['webhook-timestamp'], String(START / 1000))
    assert.deepEqual(JSON.parse(body), {
      id,
      type: 'run.failed',
      created_at: new Date(START).toISOString(),
      api_version: '2026-11-01',
      data: { scraper: 'books' },
    })
    assert.deepEqual(await bench.states(subscription.id), ['delivered'])
    const kept = await bench.log.events({ max: 10 })
    assert.deepEqual(
      kept.map(({ type }) => type),
      ['schedule.missed', 'run.failed'],
      'all are kept, newest first',
    )
    assert.deepEqual(bench.worker.counts, { delivered: 1, failed: 0, dead: 0 })
  })

  check('an event whose transaction is rolled back is not sent, and one recorded twice is one event', async (db) => {
    await using receiver = await Receiver.start()
    await using bench = new Bench(db)
    await bench.subscribe(receiver.url)
    const record = eventRecorder({ dialect: db.dialect })
    const undone = db.transaction(async (rows) => {
      await record(rows, [event({ type: 'run.started' })])
      throw new Error('undone')
    })
    await assert.rejects(undone, /undone/)
    await bench.record({ type: 'run.finished', dedupeKey: 'same' })
    await bench.record({ type: 'run.finished', dedupeKey: 'same' }, { type: 'run.failed' })
    await bench.lookAt(START)
    assert.deepEqual(receiver.types, ['run.finished', 'run.failed'])
  })

  check('keys of any length with unusual text are one event each, and data that is too large is cut', async (db) => {
    await using receiver = await Receiver.start()
    await using bench = new Bench(db)
    await bench.subscribe(receiver.url)
    const keys = ['k'.repeat(10_000), `${'k'.repeat(10_000)}2`, 'a\0b']
    for (const dedupeKey of [...keys, ...keys]) await bench.record({ type: 'run.failed', dedupeKey, data: { a: '\0' } })
    await bench.record({ type: 'run.failed', data: { runId: 'r', note: 'x'.repeat(300_000) } })
    await bench.lookAt(START)
    assert.equal(receiver.received.length, 4)
    assert.deepEqual(receiver.received[0]!.data, { a: '\0' })
    assert.deepEqual(receiver.received[3]!.data, { runId: 'r', isTruncated: true, bytes: 300_023 })
  })

  check('a digest has the events of its hour in one delivery', async (db) => {
    await using receiver = await Receiver.start()
    await using bench = new Bench(db)
    await bench.subscribe(receiver.url, { mode: 'hourly' })
    await bench.record({ type: 'run.started' }, { type: 'run.failed' })
    await bench.lookAt(START + 20 * 60 * SECOND)
    await bench.record({ type: 'run.finished' })
    assert.deepEqual(receiver.types, [])
    await bench.lookAt(START + 30 * 60 * SECOND)
    await bench.lookAt(START + 3 * HOUR)
    assert.deepEqual(receiver.types, ['digest'])
    const { count, counts, events } = receiver.received[0]!.data
    assert.deepEqual([count, counts], [3, { 'run.started': 1, 'run.failed': 1, 'run.finished': 1 }])
    assert.deepEqual(
      (events as { type: string }[]).map(({ type }) => type),
      ['run.started', 'run.failed', 'run.finished'],
    )
  })

  check('a digest that is too large comes in parts', async (db) => {
    await using receiver = await Receiver.start()
    await using bench = new Bench(db)
    await bench.subscribe(receiver.url, { mode: 'daily' })
    const data = { note: 'x'.repeat(30_000) }
    await bench.record(...Array.from({ length: 10 }, () => ({ type: 'run.failed' as const, data })))
    await bench.lookAt(START + DAY)
    assert.ok(receiver.types.length > 2 && receiver.received.every(({ body }) => body.length < 150_000))
    assert.equal(
      receiver.received.reduce((sum, one) => sum + Number(one.data['count']), 0),
      10,
    )
  })

  check('during a rotation both secrets sign; a day later only the new one does', async (db) => {
    await using receiver = await Receiver.start()
    await using bench = new Bench(db)
    const { subscription, secret } = await bench.subscribe(receiver.url)
    const { secret: fresh } = await bench.subscriptions.rotateSecret(subscription.id)
    await bench.record({ type: 'run.failed' })
    await bench.lookAt(START)
    await bench.record({ type: 'run.failed' })
    await bench.lookAt(START + DAY)
    const signedBy = ({ headers, id, body }: Received, one: string) => {
      const key = Buffer.from(one.replace('whsec_', ''), 'base64')
      const hmac = createHmac('sha256', key).update(`${id}.${headers['webhook-timestamp']}.${body}`).digest('base64')
      return String(headers['webhook-signature']).split(' ').includes(`v1,${hmac}`)
    }
    const [first, second] = receiver.received as [Received, Received]
    assert.deepEqual([signedBy(first, secret), signedBy(first, fresh)], [true, true])
    assert.deepEqual([signedBy(second, secret), signedBy(second, fresh)], [false, true])
  })

  check('a secret is not rotated twice within its grace period, unless all old ones are to expire', async (db) => {
    await using bench = new Bench(db)
    const { subscription } = await bench.subscribe('http://127.0.0.1:9/')
    let nowMs = START
    const subscriptions = new Subscriptions(db, () => nowMs)
    const { secret: second } = await subscriptions.rotateSecret(subscription.id, DAY)
    await assert.rejects(subscriptions.rotateSecret(subscription.id, DAY), {
      code: 'E_OPTION',
      message: /being replaced/,
    })
    const kept = async () => (await db.rows(`select secret from ${db.dialect.prefix}webhook`, []))[0]!['secret']
    assert.equal(await kept(), second, 'nothing has changed')
    await subscriptions.rotateSecret(subscription.id, 0)
    await subscriptions.rotateSecret(subscription.id, DAY)
    nowMs += DAY
    assert.notEqual((await subscriptions.rotateSecret(subscription.id, DAY)).secret, second)
  })

  check('items and jobs that no subscription wants are not stored', async (db) => {
    await using receiver = await Receiver.start()
    await using bench = new Bench(db)
    await bench.subscribe(receiver.url, { events: ['item.*'], filter: { scrapers: ['books'] } })
    await bench.record(
      { type: 'item.new', data: { scraper: 'books', item: { title: 'a' } } },
      { type: 'item.new', data: { scraper: 'quotes', item: { title: 'b' } } },
      { type: 'run.failed' },
    )
    await bench.lookAt(START)
    assert.equal((await bench.log.events({ max: 10 })).length, 2)
  })
})
