/** Ten thousand bad requests made from the endpoints: each is refused or answered, none is a fault of the server. */
import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Endpoint } from '../src/api/endpoint.ts'
import { ENDPOINTS } from '../src/api/endpoints.ts'
import { startServe } from './serve.ts'
import { temporaryFolder } from './sluice.ts'

const REQUESTS = 10_000
const AT_ONCE = 24
const SEED = 20_261_115

const word = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.constantFrom(
    '../../etc/passwd',
    '%00',
    '20260101_000000_aaaa',
    "' or 1=1 --",
    '-1',
    '1e999',
    'NaN',
    '[]',
    'null',
    '',
  ),
)
const json = fc.oneof(
  fc.json({ maxDepth: 4 }),
  fc.constantFrom(
    '{',
    '{"__proto__":{"a":1}}',
    '"',
    '\u0000',
    '[[[[[[[[',
    'a'.repeat(5000),
    '{"scraper":"books","args":{"pages":"x"}}',
  ),
)
/** Half of the fields an endpoint knows, and some it does not. */
const fieldsOf = (names: readonly string[]) =>
  fc.array(fc.tuple(fc.oneof(fc.constantFrom('nonsense', ...names), fc.string({ maxLength: 8 })), word), {
    maxLength: 5,
  })

interface Bad {
  method: string
  path: string
  body: string | undefined
  type: string
}

function badAskOf(one: Endpoint): fc.Arbitrary<Bad> {
  const queryNames = Object.keys(one.query?.shape ?? {})
  const bodyNames = Object.keys((one.body as { shape?: object } | undefined)?.shape ?? {})
  const object = fieldsOf(bodyNames).map((pairs) => JSON.stringify(Object.fromEntries(pairs)))
  return fc.record({
    method: fc.constantFrom(one.method, one.method, one.method, 'PUT', 'PATCH', 'DELETE', 'OPTIONS'),
    path: fc.tuple(fc.array(word, { minLength: 3, maxLength: 3 }), fieldsOf(queryNames)).map(([words, pairs]) => {
      let next = 0
      const path = one.path.replace(/:\w+/g, () => encodeURIComponent(words[next++]!.toWellFormed()))
      const query = new URLSearchParams(
        pairs.map(([name, value]): [string, string] => [name.toWellFormed(), value.toWellFormed()]),
      )
      return pairs.length === 0 ? path : `${path}?${query}`
    }),
    body: one.method === 'GET' ? fc.constant(undefined) : fc.oneof(json, object, fc.constant(undefined)),
    type: fc.constantFrom(
      'application/json',
      'application/json',
      'application/json',
      'text/plain',
      'multipart/form-data',
      'x',
    ),
  })
}

/** What starts nothing and waits for nothing: a stream that goes on is no answer to compare. */
const isAsked = ({ path }: Endpoint) => !/\/(?:try|map|events)$/.test(path)

test('ten thousand bad requests and not one fault', async () => {
  using folder = temporaryFolder()
  await using server = await startServe(['--api-rps', '100000'], { cwd: folder.path })
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE })
  const endpoints = (Object.values(ENDPOINTS) as Endpoint[]).filter(isAsked)
  const asks = fc.sample(fc.oneof(...endpoints.map(badAskOf)), { numRuns: REQUESTS, seed: SEED })
  const statuses = new Map<number, number>()
  let next = 0
  const work = async () => {
    for (let at = next++; at < asks.length; at = next++) {
      const { status, text } = await send(server.url, agent, asks[at]!)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      assert.ok(status < 500, `${JSON.stringify(asks[at])}: ${status} ${text}`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  agent.destroy()
  assert.ok((statuses.get(400) ?? 0) > 1000, 'bad requests are refused as such')
  assert.equal((await fetch(`${server.url}/readyz`)).status, 200)
})

function send(
  base: string,
  agent: Agent,
  { method, path, body, type }: Bad,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = body === undefined ? {} : { 'content-type': type, 'content-length': Buffer.byteLength(body) }
    const sent = request(base + path, { method, agent, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece) => {
        text += piece
      })
      response.once('end', () => resolve({ status: response.statusCode!, text }))
      response.once('error', reject)
    })
    sent.once('error', reject)
    sent.end(body)
  })
}
