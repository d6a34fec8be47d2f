/** URLs of Redis, and what the client library does not handle. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { Connection } from './connection.ts'

test('options that the client library would read from the URL are rejected, with the alternative', () => {
  for (const option of ['tls=false', 'db=3', 'lazyConnect=', 'sslmode=disable', 'host=other'])
    assert.throws(
      () => new Connection(`rediss://u:geheim@redis.example:6379/0?${option}`),
      ({ code, message, details }: Error & { code: string; details: { fix: string } }) => {
        assert.equal(code, 'E_OPTION')
        assert.ok(message.startsWith(`${option.split('=')[0]} in the URL of redis.example:6379 is not known`), message)
        return /rediss:\/\/.*cacert/.test(details.fix)
      },
    )
  const connection = new Connection('rediss://redis.example:6379/0?servername=other')
  assert.deepEqual(connection.redis.options.tls, { servername: 'other' })
  connection.close()
})

test('a second error on one socket, such as a reset after a TLS alert, does not end the process', async () => {
  const server = createServer((socket) => socket.on('error', () => {})).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const connection = new Connection(`redis://127.0.0.1:${(server.address() as AddressInfo).port}/0`)
  try {
    connection.redis.connect().catch(() => {})
    await once(connection.redis, 'connect')
    const { stream } = connection.redis
    for (const message of ['tlsv13 alert certificate required', 'read ECONNRESET'])
      stream.emit('error', new Error(message))
  } finally {
    connection.close()
    server.close()
  }
})

test('replies that no call is waiting for cost the connection, not the process', { timeout: 60_000 }, async () => {
  const surplus = ['$-1\r\n', '-ERR x\r\n', '*-1\r\n', ':1\r\n', '+OK\r\n'].join('')
  let pings = 0
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (data) => {
      for (const command of String(data)
        .split(/^\*\d+\r\n/m)
        .slice(1))
        if (/ping/i.test(command)) socket.write(++pings === 1 ? `+PONG\r\n${surplus}` : '+PONG\r\n')
        else socket.write(/hello/i.test(command) ? '%0\r\n' : '+OK\r\n')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const connection = new Connection(`redis://127.0.0.1:${(server.address() as AddressInfo).port}/0`)
  try {
    assert.equal(await connection.attempt(() => connection.redis.ping()), 'PONG')
    await once(connection.redis, 'close')
    assert.equal(await connection.attempt(() => connection.redis.ping()), 'PONG', 'on a new connection')
    assert.equal(pings, 2)
  } finally {
    connection.close()
    server.close()
  }
})
