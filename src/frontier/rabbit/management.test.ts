/** Depths and rates of queues, read from a real RabbitMQ. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Connection } from 'rabbitmq-client'
import { rabbitForTests, type TestRabbit } from '../../../test/services/rabbitmq.ts'
import { managementOf, readBroker } from './management.ts'

let rabbit: TestRabbit
before(async () => {
  rabbit = await rabbitForTests()
})
after(() => rabbit[Symbol.asyncDispose]())

async function serve(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://me:secret@127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('the management API', () => {
  it('reports depth, unacknowledged messages and rates of the requested queues', async () => {
    const { url, vhost } = managementOf(rabbit.url)
    assert.equal(vhost, rabbit.vhost)
    const connection = new Connection(rabbit.url)
    await using stack = new AsyncDisposableStack()
    stack.defer(() => connection.close())
    const queues = ['url_queue_ttl.a/b ä', 'priority_queue']
    for (const queue of queues) await connection.queueDeclare({ queue, durable: true })
    const publisher = connection.createPublisher({ confirm: true })
    stack.defer(() => publisher.close())
    for (let i = 0; i < 5; i++) await publisher.send(queues[0]!, { i })
    const channel = await connection.acquire()
    stack.defer(() => channel.close())
    const first = await channel.basicGet({ queue: queues[0]!, noAck: false })
    const second = await channel.basicGet({ queue: queues[0]!, noAck: false })
    assert.ok(first !== undefined && second !== undefined)
    channel.basicAck({ deliveryTag: first.deliveryTag })

    const ask = () => readBroker(url, { vhost, queues: [...queues, 'never_made'] })
    let readings = await ask()
    assert.deepEqual([readings[0]!.isThere, readings[2]!.isThere], [true, false]) // known at once, the numbers come later
    for (; readings[0]!.unacked !== 1 || readings[0]!.publishRate === 0; readings = await ask()) {
      for (const queue of queues) await publisher.send(queue, 'x')
      await delay(200)
    }
    const [work, priority, none] = readings
    assert.equal(work!.name, queues[0])
    assert.ok(work!.ready >= 3, `${work!.ready} ready`)
    assert.equal(work!.consumers, 0)
    assert.equal(priority!.unacked, 0)
    assert.deepEqual([none!.isThere, none!.ready, none!.publishRate], [false, 0, 0])
  })

  it('is expected at RabbitMQ’s default port, with the user of the broker', () => {
    assert.deepEqual(managementOf('amqp://me:p%40ss@mq.example/jobs'), {
      url: 'http://me:p%40ss@mq.example:15672',
      vhost: 'jobs',
    })
    assert.deepEqual(managementOf('amqps://mq.example:5671/%2F'), {
      url: 'https://guest:guest@mq.example:15671',
      vhost: '/',
    })
    assert.equal(managementOf('amqp://localhost').vhost, '/')
    assert.throws(() => managementOf('redis://localhost'), { code: 'E_OPTION' })
  })

  it('says what to do if it is disabled, refuses, or is something else', async (t) => {
    const { url, vhost } = managementOf(rabbit.url)
    const ask = (from: string) => readBroker(from, { vhost, queues: ['a'], timeoutMs: 2000 })
    await assert.rejects(ask('http://127.0.0.1:1'), { code: 'E_SERVICE', fix: /rabbitmq-plugins enable/ })
    await assert.rejects(ask(url.replace(/\/\/.*@/, '//guest:wrong@')), {
      code: 'E_SERVICE',
      message: /refuses \(401\)/,
    })
    await assert.rejects(ask('ftp://x'), { code: 'E_OPTION' })
    const page = await serve(t, (_, response) => response.end('<html>'))
    await assert.rejects(ask(page), { code: 'E_SERVICE', message: /not the JSON/ })
    const broken = await serve(t, (_, response) => response.writeHead(500).end('{}'))
    await assert.rejects(ask(broken), { code: 'E_SERVICE', message: /status 500/ })
    const endless = await serve(t, (_, response) => response.end('x'.repeat(1_000_000)))
    await assert.rejects(
      ask(endless),
      (error: Error) => /larger than/.test(error.message) && !/secret/.test(error.message),
    )
  })

  it('is not waited for longer than the timeout', async (t) => {
    const silent = await serve(t, () => {})
    const question = { queues: ['a'], timeoutMs: 100 }
    await assert.rejects(readBroker(silent, question), { code: 'E_SERVICE', message: /no answer in time/ })
    const stop = new AbortController()
    const asking = readBroker(silent, { ...question, timeoutMs: 10_000, signal: stop.signal })
    stop.abort()
    await assert.rejects(asking, { name: 'AbortError' })
  })

  it('computes rates from the counts of the last 15 s, not from the last moment', async (t) => {
    const at = (count: number, seconds: number) => ({ sample: count, timestamp: 1_700_000_000_000 + seconds * 1000 })
    const stats = {
      publish_details: { rate: 0, avg_rate: 150, samples: [at(2955, 15), at(2205, 10), at(1455, 5), at(705, 0)] },
      deliver_get_details: { rate: 0, avg_rate: 47, samples: [at(705, 15), at(0, 10), at(0, 5), at(0, 0)] }, // its first 5 s
      ack_details: { rate: 3, samples: [at(100, 15), at(100, 10), at(100, 5), at(100, 0)] },
    }
    let asked = ''
    const api = await serve(t, (request, response) => {
      asked = request.url!
      response.end(JSON.stringify({ message_stats: stats }))
    })
    const [reading] = await readBroker(api, { queues: ['a'] })
    assert.deepEqual([reading!.publishRate, reading!.deliverRate, reading!.ackRate], [150, 141, 0])
    assert.match(asked, /msg_rates_age=15&msg_rates_incr=5/)
  })

  it('uses zeros for values a young queue does not report yet', async (t) => {
    const young = await serve(t, (_, response) => response.end('{"message_stats":{"publish_details":{"rate":2.5}},"messages_ready":"x"}')) // biome-ignore format: one line reads better
    const [reading] = await readBroker(young, { queues: ['a'] })
    const zeros = { ready: 0, unacked: 0, consumers: 0, deliverRate: 0, ackRate: 0 }
    assert.deepEqual(reading, { name: 'a', isThere: true, publishRate: 2.5, ...zeros })
  })
})
