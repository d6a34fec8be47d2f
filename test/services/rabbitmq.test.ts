/** The broker that the queue tests rely on. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { isAnswered } from './free-port.ts'
import { rabbitForTests } from './rabbitmq.ts'

test('each test gets its own virtual host', async () => {
  await using one = await rabbitForTests()
  await using two = await rabbitForTests()
  const [first, second] = [new URL(one.url), new URL(two.url)]
  assert.equal(first.port, second.port)
  assert.notEqual(first.pathname, second.pathname)
  assert.equal(await isAnswered(Number(first.port)), true)
  await new Promise<void>((resolve, reject) => {
    const socket = connect(Number(first.port), '127.0.0.1', () => socket.write('AMQP\x00\x00\x09\x01', 'latin1'))
    socket.once('error', reject)
    socket.once('data', (answer) => {
      socket.destroy()
      assert.match(answer.toString('latin1'), /RabbitMQ/)
      resolve()
    })
  })
})
