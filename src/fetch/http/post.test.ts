/** POST requests to receivers that answer oddly. */
import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { openPoster } from './post.ts'

async function posterTo(answer: RequestListener) {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const poster = openPoster({ userAgent: 'test', connectTimeoutMs: 5000, allowPrivate: true, allowAddresses: [] })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/a?b=c`
  return {
    post: (signal = AbortSignal.timeout(10_000)) =>
      poster.post({ url, headers: { 'content-type': 'application/json' }, body: '{"a":1}' }, signal),
    async [Symbol.asyncDispose]() {
      await poster[Symbol.asyncDispose]()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

test('sends what it is given, with our user agent', async () => {
  await using receiver = await posterTo(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    response.end([request.method, request.url, request.headers['user-agent'], body].join(' '))
  })
  assert.deepEqual(await receiver.post(), { status: 200, body: 'POST /a?b=c test {"a":1}' })
})

test('a status is an answer, however large its body is, and even if it is cut off', async () => {
  await using large = await posterTo((_, response) => void response.writeHead(201).end('x'.repeat(2_000_000)))
  assert.equal((await large.post()).status, 201)
  await using cut = await posterTo((request, response) => {
    response.writeHead(202, { 'content-length': '100' }).write('x', () => request.socket.destroy())
  })
  assert.equal((await cut.post()).status, 202)
})

test('a connection that the receiver closed while it was idle is reopened', async () => {
  let count = 0
  await using receiver = await posterTo((request, response) => {
    count++
    response.end(() => setImmediate(() => request.socket.destroy()))
  })
  for (let i = 0; i < 5; i++) assert.equal((await receiver.post()).status, 200)
  assert.equal(count, 5)
})

test('throws the signal’s reason, and a connection error as one of ours', async () => {
  await using silent = await posterTo(() => {})
  await assert.rejects(silent.post(AbortSignal.abort(new Error('stopped'))), /stopped/)
  await assert.rejects(silent.post(AbortSignal.timeout(50)), { name: 'TimeoutError' })
  await using rude = await posterTo((request) => void request.socket.destroy())
  await assert.rejects(rude.post(), { code: 'E_CONNECTION' })
})
