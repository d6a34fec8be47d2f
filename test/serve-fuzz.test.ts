/**
 * Bad requests generated from the endpoints: each is rejected or answered, none causes a server error. The suite sends a
 * thousand; for ten thousand, or others:
 *
 *   FUZZ_REQUESTS=10000 FUZZ_SEED=7 .deps/bin/node scripts/test.ts test/serve-fuzz.test.ts
 */
import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Endpoint } from '../src/server/api/routes/endpoint.ts'
import { ENDPOINTS } from '../src/server/api/routes/endpoints.ts'
import { startServe } from './serve.ts'
import { temporaryFolder } from './sluice.ts'

const REQUESTS = Number(process.env['FUZZ_REQUESTS'] ?? 1000)
const SEED = Number(process.env['FUZZ_SEED'] ?? 20_261_115)
const AT_ONCE = 24

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

/** Headers that callers and proxies send: right, wrong or made up. */
const headers = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  fc.dictionary(
    fc.constantFrom(
      'authorization',
      'idempotency-key',
      'last-event-id',
      'origin',
      'sec-fetch-site',
      'forwarded',
      'x-forwarded-for',
      'accept-encoding',
      'if-none-match',
      'range',
    ),
    fc.oneof(
      fc.string({ maxLength: 300 }).map((text) => text.replace(/[^ -~]/g, '?')),
      fc.constantFrom(
        'Bearer slk_x',
        'bearer ',
        'for=[',
        'for="[::1]:x"',
        ',,,',
        '127.0.0.1',
        'null',
        'cross-site',
        '\xff',
      ),
    ),
    { maxKeys: 3 },
  ),
)

interface Bad {
  headers: Record<string, string>
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
    headers,
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

/** Endpoints that start nothing and wait for nothing. */
const isAsked = ({ path }: Endpoint) => !/\/(?:try|map)$/.test(path)

test('answers bad requests without a single server error', async () => {
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
  console.log(`${REQUESTS} requests, seed ${SEED}:`, JSON.stringify(Object.fromEntries(statuses)))
  assert.ok((statuses.get(400) ?? 0) > REQUESTS / 10, 'bad requests are refused as such')
  assert.equal((await fetch(`${server.url}/readyz`)).status, 200)
})

function send(
  base: string,
  agent: Agent,
  { method, path, body, type, headers: given }: Bad,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const content = body === undefined ? {} : { 'content-type': type, 'content-length': Buffer.byteLength(body) }
    const sent = request(base + path, { method, agent, headers: { ...given, ...content } }, (response) => {
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
