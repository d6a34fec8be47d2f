/** Receivers that fail in every way, and servers that die, on both databases. */
import assert from 'node:assert/strict'
import { until } from '../../../test/fleet.ts'
import { Receiver } from '../../../test/site/receiver.ts'
import { Bench, onBothDatabases, START } from '../../../test/webhooks.ts'
import type { EventType } from './contract.ts'
import { testEvent } from './record.ts'

const SECOND = 1000
const HOUR = 3_600_000
const DAY = 24 * HOUR

onBothDatabases('deliveries', ({ check, engine }) => {
  check('a receiver that answers 500 for an hour then gets everything, in order', async (db) => {
    await using receiver = await Receiver.start()
    await using bench = new Bench(db)
    const { subscription } = await bench.subscribe(receiver.url)
    receiver.status = 500
    receiver.answer = `broken${'\0'}${'x'.repeat(5000)}`
    await bench.record({ type: 'run.started' })
    for (let minute = 0; minute < 60; minute++) {
      if (minute === 30) await bench.record({ type: 'run.failed' })
      await bench.lookAt(START + minute * 60 * SECOND)
    }
    assert.deepEqual([...new Set(receiver.types)], ['run.started'], 'what came later waits')
    assert.equal(receiver.received.length, 5, 'at once, then after 10 s, 1 min, 5 min and 30 min')
    const [, first] = await bench.log.deliveries(subscription.id, { max: 10 })
    assert.deepEqual([first!.state, first!.status, first!.attempts], ['failed', 500, 5])
    assert.ok(first!.answer!.startsWith('brokenx') && first!.answer!.length <= 1024)
    receiver.status = 200
    await bench.lookAt(START + 3 * HOUR)
    assert.deepEqual(receiver.types.slice(5), ['run.started', 'run.failed'])
    assert.equal(new Set(receiver.received.slice(0, 6).map(({ id }) => id)).size, 1, 'the same id in every try')
    assert.deepEqual(await bench.states(subscription.id), ['delivered', 'delivered'])
  })

  check('an event the receiver refuses is given up within a minute, and later ones arrive', async (db) => {
    await using receiver = await Receiver.start()
    await using bench = new Bench(db)
    const { subscription } = await bench.subscribe(receiver.url)
    receiver.status = ({ type }) => (type === 'run.started' ? 400 : 204)
    await bench.record({ type: 'run.started' }, { type: 'run.finished' })
    for (let second = 0; second < 60; second += 5) await bench.lookAt(START + second * SECOND)
    assert.deepEqual(receiver.types, ['run.started', 'run.started', 'run.started', 'run.finished'])
    assert.deepEqual(await bench.states(subscription.id), ['dead', 'delivered'])
    assert.equal((await bench.subscriptions.get(subscription.id)).failingSinceMs, undefined)
  })

  check('a receiver that requests a retry with 4xx gets one, in order', async (db) => {
    for (const status of [408, 425, 429]) {
      await using receiver = await Receiver.start()
      await using bench = new Bench(db)
      const { subscription } = await bench.subscribe(receiver.url)
      receiver.status = status
      await bench.record({ type: 'run.started' }, { type: 'run.finished' })
      for (let second = 0; second <= 120; second += 10) await bench.lookAt(START + second * SECOND)
      assert.deepEqual(await bench.states(subscription.id), ['failed', 'pending'], String(status))
      await bench.subscriptions.remove(subscription.id)
    }
  })

  check('a test is tried once, blocks nothing, and does not wait for failing deliveries before it', async (db) => {
    await using receiver = await Receiver.start()
    await using bench = new Bench(db)
    const { subscription } = await bench.subscribe(receiver.url)
    receiver.status = ({ type }) => (type === 'run.finished' ? 204 : 500)
    await bench.record(testEvent(subscription), { type: 'run.finished' })
    await bench.lookAt(START)
    assert.deepEqual(await bench.states(subscription.id), ['dead', 'delivered'])
    assert.equal((await bench.subscriptions.get(subscription.id)).failingSinceMs, undefined)
    await bench.record({ type: 'run.started' }, { type: 'run.finished' })
    await bench.lookAt(START + SECOND)
    receiver.status = 204
    await bench.record(testEvent(subscription))
    await bench.lookAt(START + 2 * SECOND)
    assert.deepEqual((await bench.states(subscription.id)).slice(2), ['failed', 'pending', 'delivered'])
  })

  check('a delivery is given up after eight tries over a day', async (db) => {
    await using receiver = await Receiver.start()
    await using bench = new Bench(db)
    const { subscription } = await bench.subscribe(receiver.url)
    receiver.status = 503
    await bench.record({ type: 'run.failed' })
    for (let ms = 0; ms <= 1.1 * DAY; ms += 10 * 60 * SECOND) await bench.lookAt(START + ms)
    const [given] = await bench.log.deliveries(subscription.id, { max: 1 })
    assert.deepEqual([given!.state, given!.attempts, receiver.received.length], ['dead', 8, 8])
    assert.ok(given!.lastAtMs! - START > 0.9 * DAY)
  })

  check('a subscription that fails for three days is disabled, and others are notified', async (db) => {
    await using receiver = await Receiver.start()
    await using other = await Receiver.start()
    await using bench = new Bench(db)
    const { subscription } = await bench.subscribe(receiver.url)
    await bench.subscribe(other.url, { events: ['webhook.disabled'] })
    receiver.status = 500
    await bench.record({ type: 'run.failed' }, { type: 'run.failed' }, { type: 'run.failed' }, { type: 'run.failed' })
    for (let ms = 0; ms <= 4 * DAY; ms += HOUR) await bench.lookAt(START + ms)
    const { isActive, disabledReason } = await bench.subscriptions.get(subscription.id)
    assert.equal(isActive, false)
    assert.match(disabledReason!, /three days: answered 500/)
    assert.deepEqual(await bench.states(subscription.id), ['dead', 'dead', 'dead', 'dead'])
    assert.deepEqual(other.types, ['webhook.disabled'])
    assert.equal((other.received[0]!.data['webhook'] as { id: string }).id, subscription.id)
  })

  check('410 disables a subscription at once; when enabled again it gets new events', async (db) => {
    await using receiver = await Receiver.start()
    await using bench = new Bench(db)
    const { subscription } = await bench.subscribe(receiver.url, { events: ['run.failed'] })
    receiver.status = 410
    await bench.record({ type: 'run.failed' }, { type: 'run.failed' })
    await bench.lookAt(START)
    await bench.lookAt(START + HOUR)
    assert.equal(receiver.received.length, 1)
    const off = await bench.subscriptions.get(subscription.id)
    assert.match(off.disabledReason!, /410/)
    receiver.status = 200
    await bench.subscriptions.update(off.id, { ...off, isActive: true })
    await bench.record({ type: 'run.failed' })
    await bench.lookAt(START + 2 * HOUR)
    assert.deepEqual(await bench.states(subscription.id), ['dead', 'dead', 'delivered'])
    await bench.log.redeliver((await bench.log.deliveries(off.id, { max: 5 }))[2]!.id, bench.nowMs)
    await bench.lookAt(START + 2 * HOUR)
    assert.deepEqual(receiver.received.map(({ id }) => id).at(-1), receiver.received[0]!.id, 'redelivered')
  })

  check('a receiver that flaps gets each event once', async (db) => {
    await using receiver = await Receiver.start()
    await using bench = new Bench(db)
    await bench.subscribe(receiver.url)
    receiver.status = () => (receiver.received.length % 2 === 1 ? 500 : 200)
    const types: EventType[] = ['run.started', 'run.failed', 'run.error_rate', 'run.finished']
    for (const type of types) await bench.record({ type })
    for (let ms = 0; ms <= HOUR; ms += 15 * SECOND) await bench.lookAt(START + ms)
    assert.deepEqual(
      receiver.types.filter((_, i) => i % 2 === 1),
      types,
    )
    assert.equal(receiver.received.length, 8)
  })

  check('a redirect is a failure and is not followed', async (db) => {
    await using receiver = await Receiver.start()
    await using elsewhere = await Receiver.start()
    await using bench = new Bench(db)
    const { subscription } = await bench.subscribe(receiver.url)
    receiver.status = 307
    receiver.headers = { location: elsewhere.url }
    await bench.record({ type: 'run.failed' })
    await bench.lookAt(START)
    const [tried] = await bench.log.deliveries(subscription.id, { max: 1 })
    assert.deepEqual([tried!.state, tried!.error], ['failed', 'answered 307: redirects are not followed'])
    assert.equal(elsewhere.received.length, 0)
  })

  check('nothing is sent to a private address', async (db) => {
    await using receiver = await Receiver.start()
    await using bench = new Bench(db, { allowPrivate: false })
    const urls = [receiver.url, receiver.url.replace('127.0.0.1', 'localhost'), 'http://169.254.169.254/latest']
    for (const url of urls) {
      const { subscription } = await bench.subscribe(url)
      await bench.record({ type: 'run.failed' })
      await bench.lookAt(START)
      const [tried] = await bench.log.deliveries(subscription.id, { max: 1 })
      assert.equal(tried!.state, 'dead', url)
      assert.match(tried!.error!, /^E_PRIVATE_ADDRESS/)
    }
    assert.equal(receiver.received.length, 0)
  })

  check('a receiver that never answers does not hold up the others', async (db) => {
    await using silent = await Receiver.start()
    await using receiver = await Receiver.start()
    await using bench = new Bench(db)
    silent.status = 0
    await bench.subscribe(silent.url)
    await bench.subscribe(receiver.url)
    await bench.record(...Array.from({ length: 50 }, () => ({ type: 'run.started' as const })))
    await bench.worker.look()
    await until('all are there', () => receiver.received.length === 50)
    assert.equal(silent.received.length, 1)
  })

  check('deliveries of a dead server are sent by the next one, with the same id', async (db, open) => {
    await using receiver = await Receiver.start()
    const isAlone = engine === 'sqlite:'
    receiver.status = 0
    const dead = new Bench(db)
    const { subscription } = await dead.subscribe(receiver.url)
    await dead.record({ type: 'run.failed' })
    await dead.worker.look()
    await until('it was sent', () => receiver.received.length === 1)
    receiver.status = 200
    await using bench = new Bench(isAlone ? db : await open(), { isAlone, holder: 'two' })
    if (!isAlone) {
      await bench.lookAt(START + 20 * SECOND)
      assert.equal(receiver.received.length, 1, 'the other may still be at it')
    }
    await bench.lookAt(START + 31 * SECOND)
    assert.equal(receiver.received.length, 2)
    assert.equal(receiver.received[1]!.id, receiver.received[0]!.id)
    assert.deepEqual(await bench.states(subscription.id), ['delivered'])
    await dead[Symbol.asyncDispose]()
  })

  if (engine === 'postgres:')
    check('two servers deliver each event once', async (db, open) => {
      await using receiver = await Receiver.start()
      await using one = new Bench(db, { isAlone: false })
      await using two = new Bench(await open(), { isAlone: false, holder: 'two' })
      for (const name of ['a', 'b', 'c', 'd', 'e']) await one.subscribe(receiver.url, { name })
      await one.record(...Array.from({ length: 20 }, () => ({ type: 'run.started' as const })))
      await Promise.all([one.lookAt(START), two.lookAt(START)])
      assert.equal(receiver.received.length, 100)
      assert.equal(one.worker.counts.delivered + two.worker.counts.delivered, 100)
    })
})
