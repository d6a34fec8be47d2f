/** Signatures checked against the test vector of the Standard Webhooks specification, event ids, and retry times. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newEventId } from './event-id.ts'
import { retryWaitMs, TRIES_MAX } from './retry-times.ts'
import { newSecret, signedHeaders } from './signature.ts'

const VECTOR = {
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  atMs: 1_614_265_330_000,
  body: '{"test": 2432232314}',
}
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

test('signs as the specification does', () => {
  assert.deepEqual(signedHeaders({ ...VECTOR, secrets: [SECRET] }), {
    'webhook-id': VECTOR.id,
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  })
})

test('signs with each of two secrets', () => {
  const { 'webhook-signature': both } = signedHeaders({ ...VECTOR, secrets: [newSecret(), SECRET] })
  const [first, second] = both!.split(' ')
  assert.equal(second, 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
  assert.match(first!, /^v1,[\w+/]{43}=$/)
  assert.notEqual(first, second)
})

test('secrets are long, prefixed, and never the same', () => {
  assert.match(newSecret(), /^whsec_[\w+/]{43}=$/)
  assert.notEqual(newSecret(), newSecret())
})

test('event ids are version 7 UUIDs that sort by time, and by order of creation within a millisecond', () => {
  const ids = [...Array.from({ length: 5000 }, () => newEventId(1_700_000_000_000)), newEventId(1_700_000_000_001)]
  for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.deepEqual([...ids].sort(), ids)
  assert.equal(new Set(ids).size, ids.length)
})

test('tries eight times, from 10 s on, over about a day, with jitter', () => {
  const waits = (random: () => number) =>
    Array.from({ length: TRIES_MAX }, (_, i) => retryWaitMs(i + 1, { random })).filter((ms) => ms !== undefined)
  const hours = (ms: number[]) => ms.reduce((sum, one) => sum + one, 0) / 3_600_000
  assert.equal(waits(() => 0.5).length, 7)
  assert.equal(waits(() => 0.5)[0], 10_000)
  assert.ok(hours(waits(() => 0)) > 18 && hours(waits(() => 0.999)) < 30)
  assert.notEqual(retryWaitMs(3, { random: () => 0.1 }), retryWaitMs(3, { random: () => 0.2 }))
})
