/** Which requests are let in: by key, or because they were made on this machine. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../../../test/sluice.ts'
import { ApiKeys } from '../../../server/access/keys.ts'
import { openSqliteDatabase } from '../../../store/sqlite.ts'
import { type GateOptions, openGate } from './identify.ts'
import { TrustedProxies } from './trusted-proxies.ts'

const HERE = { host: '127.0.0.1:7700' }

interface Rig {
  keys: ApiKeys
  lines: string[]
  /** Number of queries sent to the store. */
  asked: { count: number }
  clock: { ms: number }
  open(options?: Partial<GateOptions>): Promise<(headers?: object, socket?: string) => Promise<string>>
}

/** The gate's answer to a request as one word: the caller's name, the refusal, or 429. */
async function withRig(work: (rig: Rig) => Promise<void>): Promise<void> {
  using folder = temporaryFolder()
  const db = openSqliteDatabase(join(folder.path, 'store.db'))
  const asked = { count: 0 }
  const counted = {
    ...db,
    rows: (sql: string, values: Parameters<typeof db.rows>[1]) => {
      asked.count++
      return db.rows(sql, values)
    },
  }
  const keys = new ApiKeys(counted)
  const lines: string[] = []
  const clock = { ms: 0 }
  const open: Rig['open'] = async (options = {}) => {
    const gate = await openGate({
      keys,
      host: '127.0.0.1',
      isLoopbackFree: false,
      proxies: new TrustedProxies(),
      say: (line) => lines.push(line),
      env: {},
      now: () => clock.ms,
      ...options,
    })
    lines.push(gate.rule)
    return async (headers = HERE, socket = '127.0.0.1') => {
      const found = await gate.identify({ ...HERE, ...headers }, socket)
      if (!('given' in found)) return found.name
      return found.waitMs > 0 ? '429' : found.given
    }
  }
  await work({ keys, lines, asked, clock, open }).finally(() => db.close())
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

test('a request is local only if it comes from this machine, to its own name, not via a foreign page or a proxy', () =>
  withRig(async ({ open, clock }) => {
    const ask = await open()
    for (const headers of [{}, { host: 'localhost' }, { host: '[::1]:7700' }, { 'sec-fetch-site': 'none' }])
      assert.equal(await ask(headers), '127.0.0.1', JSON.stringify(headers))
    assert.equal(await ask({ origin: 'http://127.0.0.1:7700', 'sec-fetch-site': 'same-origin' }), '127.0.0.1')
    for (const headers of [
      { host: '127.evil.example:7700' },
      { host: '127.evil.example:7700', origin: 'http://127.evil.example:7700' },
      { host: '127.0.0.1.nip.io:7700' },
      { host: 'localhost.evil.example' },
      { host: 'app.localhost:7700' },
      { host: '' },
      { host: undefined },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'http://evil.example' },
      { origin: 'http://127.0.0.1:3000' },
      { origin: 'null' },
      { forwarded: 'for=1.2.3.4' },
      { 'x-forwarded-for': '127.0.0.1' },
      { 'x-forwarded-proto': 'https' },
      { 'x-real-ip': '127.0.0.1' },
      { via: '1.1 proxy' },
    ]) {
      assert.equal(await ask(headers), 'no key', JSON.stringify(headers))
      clock.ms += 1000
    }
    assert.equal(await ask({}, '192.168.0.7'), 'no key')
    assert.equal(await ask({}, ''), 'no key')
  }))

test('once a key exists every caller needs one, even while the server runs and after the key is revoked', () =>
  withRig(async ({ open, keys, lines }) => {
    const ask = await open()
    assert.match(lines[0]!, /no key yet/)
    assert.equal(await ask(), '127.0.0.1')
    const { key, id } = await keys.create('ci', 'read')
    assert.equal(await ask(), 'no key')
    assert.match(lines[1]!, /first key was created: every request needs a key/)
    assert.equal(await ask(bearer(key)), 'ci')
    await keys.revoke(id)
    assert.equal(await ask(), 'no key')
    const again = await open()
    assert.match(lines.at(-1)!, /every request needs a key/)
    assert.equal(await again(), 'no key', 'a restart forgets nothing')
    const free = await open({ isLoopbackFree: true })
    assert.match(lines.at(-1)!, /--no-key-on-loopback/)
    assert.equal(await free(), '127.0.0.1')
    assert.equal(await free(bearer('slk_wrong')), 'wrong key', 'a key that is given must be right')
    assert.equal(await free({ 'x-forwarded-for': '8.8.8.8' }), 'no key')
    assert.equal(await free({ host: '127.evil.example' }), 'no key')
  }))

test('the rule lists loopback addresses that are proxies, whose requests need a key', () =>
  withRig(async ({ open, lines }) => {
    for (const isLoopbackFree of [true, false]) {
      const ask = await open({ isLoopbackFree, proxies: new TrustedProxies('127.0.0.0/8') })
      assert.equal(await ask(), 'no key')
      assert.equal(await ask({}, '::1'), '::1')
      assert.match(
        lines.at(-1)!,
        /requests from this machine need n.*; requests from 127\.0\.0\.1 come through a proxy \(--trust-proxy\) and need one$/,
      )
    }
  }))

test('accepts keys from the environment, each with its own name, and the scheme in any case', () =>
  withRig(async ({ open }) => {
    const env = { SLUICE_API_KEY: 'the-first-of-two-keys, read:the-second-of-two-keys' }
    const ask = await open({ env })
    assert.equal(await ask(), 'no key')
    const names = [
      await ask(bearer('the-first-of-two-keys')),
      await ask({ authorization: 'bearer the-second-of-two-keys' }),
    ]
    assert.ok(
      names.every((name) => /^SLUICE_API_KEY:[0-9a-f]{8}$/.test(name)),
      names.join(),
    )
    assert.notEqual(names[0], names[1])
    assert.equal(await ask({ authorization: 'BEARER  the-first-of-two-keys' }), names[0])
    assert.equal(await ask({ authorization: 'Basic dTpw' }), 'another scheme')
    assert.equal(await (await open({ env, isLoopbackFree: true }))(), '127.0.0.1')
  }))

test('requires a key to listen on an address that others can reach, whatever its name begins with', () =>
  withRig(async ({ open, keys }) => {
    for (const host of ['0.0.0.0', '::', '', '127.example.org', '127.evil.example', 'localhost.', '10.0.0.1'])
      await assert.rejects(open({ host }), { code: 'E_OPTION' }, host)
    for (const host of ['127.0.0.1', 'localhost', '::1', '127.0.0.2']) await open({ host })
    const { id } = await keys.create('ci', 'read')
    await open({ host: '0.0.0.0' })
    await keys.revoke(id)
    await assert.rejects(open({ host: '0.0.0.0' }), { code: 'E_OPTION' }, 'one that was revoked is none')
  }))

test('limits wrong and missing keys per address before the store is queried', () =>
  withRig(async ({ open, keys, asked, clock }) => {
    const { key } = await keys.create('ci', 'read')
    const ask = await open()
    const flood = async (count: number, socket: string, headers: (i: number) => object) => {
      const said: Record<string, number> = {}
      for (let i = 0; i < count; i++) {
        const word = await ask(headers(i), socket)
        said[word] = (said[word] ?? 0) + 1
      }
      return said
    }
    assert.deepEqual(await flood(600, '10.0.0.1', () => ({})), { 'no key': 20, '429': 580 })
    const before = asked.count
    assert.deepEqual(await flood(600, '10.0.0.2', (i) => bearer(`slk_${i}`)), { 'wrong key': 20, '429': 580 })
    assert.ok(asked.count - before <= 21, `${asked.count - before} questions`)
    assert.equal(await ask(bearer(key), '10.0.0.2'), 'ci', 'a valid key works from the same address')
    assert.equal(await ask(bearer('slk_x'), '10.0.0.3'), 'wrong key', 'another address has its own tries')
    const made = await keys.create('new', 'read')
    assert.equal(await ask(bearer(made.key), '10.0.0.2'), '429')
    clock.ms += 2001
    await flood(100, '10.0.0.2', (i) => bearer(`slk_${i}`))
    assert.equal(
      await ask(bearer(made.key), '10.0.0.2'),
      'new',
      'also a new one, a moment later, in the middle of a flood',
    )
    clock.ms += 3000
    assert.deepEqual(await flood(10, '10.0.0.1', () => ({})), { 'no key': 5, '429': 5 })
    assert.deepEqual(await flood(30, '2001:db8:0:1::1', () => ({})), { 'no key': 20, '429': 10 })
    assert.equal(await ask({}, '2001:db8:0:1::2'), '429', 'addresses of one /64 are one')
    assert.equal(await ask({}, '2001:db8:0:2::1'), 'no key')
  }))

test('accepts a new key at once, and a revoked one for two seconds at most', () =>
  withRig(async ({ open, keys, clock }) => {
    const ask = await open()
    const first = await keys.create('first', 'read')
    assert.equal(await ask(bearer(first.key)), 'first')
    const second = await keys.create('second', 'admin')
    assert.equal(await ask(bearer(second.key)), 'second')
    await keys.revoke(first.id)
    clock.ms += 2001
    assert.equal(await ask(bearer(first.key)), 'wrong key')
  }))

test('gives each caller behind a trusted proxy its own tries, and treats none of them as local', () =>
  withRig(async ({ open }) => {
    const ask = await open({ proxies: new TrustedProxies('127.0.0.1') })
    const from = (address: string) => ask({ 'x-forwarded-for': address })
    assert.equal(await ask(), 'no key', 'a connection from the proxy, with no word about whom it is for')
    for (let i = 0; i < 30; i++) await from('203.0.113.1')
    assert.deepEqual([await from('203.0.113.1'), await from('203.0.113.2')], ['429', 'no key'])
  }))
