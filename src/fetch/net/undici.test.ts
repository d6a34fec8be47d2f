import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import * as ours from './undici.ts'

test('a scraper with its own client of the same undici can speak HTTP/2, with one connection and with the next', async () => {
  const { Client } = await import('undici') // after ours, as a scraper does
  assert.equal(Client, ours.Client)
  const server = createServer((_request, response) => response.end('hello')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  try {
    for (let i = 0; i < 2; i++) {
      const client = new Client(origin, { allowH2: true, h2Options: { useH2c: true } })
      const { body } = await client.request({ path: '/', method: 'GET' })
      assert.equal(await body.text(), 'hello')
      await client.close()
    }
  } finally {
    server.close()
  }
})
