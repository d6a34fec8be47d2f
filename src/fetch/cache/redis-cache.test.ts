/** Pages that the workers of a fleet share through a real Redis. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { zstdCompressSync } from 'node:zlib'
import { Redis } from 'ioredis'
import { redisForTests, startRedis, type TestRedis } from '../../../test/services/redis.ts'
import type { ScrapeError } from '../../core/errors.ts'
import type { Page } from '../../core/page.ts'
import { HttpPage, type PageParts } from '../http/http-page.ts'
import { openRedisCache, type RedisCacheOptions } from './redis-cache.ts'

let server: TestRedis
let redis: Redis

before(async () => {
  server = await redisForTests()
  redis = new Redis(server.url)
})
after(async () => {
  redis.disconnect()
  await server[Symbol.asyncDispose]()
})

function pageOf(url: string, parts: Partial<PageParts> = {}): Page {
  return new HttpPage({
    requestedUrl: url,
    url: `${url}/there`,
    redirects: [url],
    status: 200,
    headers: {
      'content-type': 'text/html; charset=windows-1252',
      ['__proto__']: 'a header of this name',
      'x-many': ['a', 'b'],
    },
    body: Buffer.from([0x63, 0x61, 0x66, 0xe9]),
    contentType: 'text/html',
    charset: 'windows-1252',
    wireBytes: 3,
    timings: { firstByteMs: 5.5, totalMs: 7 },
    fetchedAtMs: Date.now(),
    ...parts,
  })
}

const open = (options: Partial<RedisCacheOptions> = {}) => openRedisCache({ url: server.url, ...options })

/** Writes a page, and waits until it is stored. */
async function keep(url: string, page: Page, options: Partial<RedisCacheOptions> = {}): Promise<void> {
  await using cache = await open(options)
  cache.set({ url }, page)
}

const value = (url: string) => redis.getBuffer(`content:${url}`)

describe('a cache in Redis', () => {
  it('gives one worker the page another has fetched', async () => {
    const url = 'https://a.example/shared'
    const page = pageOf(url)
    await keep(url, page)
    await using cache = await open()
    const found = (await cache.get({ url }))!
    assert.equal(found.fromCache, true)
    assert.equal(found.text, 'café')
    assert.equal(found.requestedUrl, url)
    for (const name of ['url', 'redirects', 'status', 'body', 'contentType', 'charset', 'timings', 'bytes'] as const)
      assert.deepEqual(found[name], page[name], name)
    assert.deepEqual(Object.entries(found.headers), Object.entries(page.headers))
    assert.equal(await cache.get({ url: 'https://a.example/other' }), undefined)
    assert.equal(await cache.get({ url, headers: { 'accept-language': 'de' } }), undefined)
  })

  it('stores the body even if the page is released at once', async () => {
    const url = 'https://a.example/released'
    await using cache = await open()
    const page = pageOf(url)
    cache.set({ url }, page)
    page.release()
    while ((await value(url)) === null) await delay(5)
    assert.equal((await cache.get({ url }))?.text, 'café')
  })

  it('lets Redis expire a page after 60 s, or sooner if it was fetched earlier', async () => {
    const url = 'https://a.example/fresh'
    await keep(url, pageOf(url))
    const leftMs = await redis.pttl(`content:${url}`)
    assert.ok(leftMs > 55_000 && leftMs <= 60_000, `${leftMs} ms`)
    const nowMs = Date.now()
    await keep(`${url}2`, pageOf(`${url}2`, { fetchedAtMs: nowMs - 4000 }), { freshMs: 5000, now: () => nowMs })
    assert.ok((await redis.pttl(`content:${url}2`)) <= 1000)
    await keep(`${url}3`, pageOf(`${url}3`, { fetchedAtMs: nowMs - 5000 }), { freshMs: 5000, now: () => nowMs })
    assert.equal(await value(`${url}3`), null)
  })

  it('does not return a page older than the reader wants, but does return one from a clock ahead of ours', async () => {
    const url = 'https://a.example/strict'
    await keep(url, pageOf(url))
    await using strict = await open({ freshMs: 1000, now: () => Date.now() + 2000 })
    assert.equal(await strict.get({ url }), undefined)
    await using late = await open({ now: () => Date.now() - 30_000 })
    assert.ok(await late.get({ url }))
  })

  it('follows the rules on which pages may be cached', async () => {
    const url = 'https://a.example/mine'
    await keep(url, pageOf(url, { status: 404 }))
    await keep(url, pageOf(url, { headers: { 'set-cookie': ['id=1'] } }))
    assert.equal(await value(url), null)
  })

  it('compresses only bodies that become smaller', async () => {
    const text = Buffer.from('<p>The same again, and again.</p>'.repeat(2000))
    const noise = randomBytes(50_000)
    await keep('https://a.example/text', pageOf('https://a.example/text', { body: text }))
    await keep('https://a.example/noise', pageOf('https://a.example/noise', { body: noise }))
    assert.ok((await value('https://a.example/text'))!.length < 5000)
    assert.ok((await value('https://a.example/noise'))!.includes(noise))
    await using cache = await open()
    assert.deepEqual((await cache.get({ url: 'https://a.example/text' }))!.body, text)
    assert.deepEqual((await cache.get({ url: 'https://a.example/noise' }))!.body, noise)
  })

  it('skips pages that are too large', async () => {
    const url = 'https://a.example/huge'
    await keep(url, pageOf(url, { body: randomBytes(20_000) }), { valueBytesMax: 20_000 })
    await keep(url, pageOf(url, { body: Buffer.alloc(200_000) }), { bodyBytesMax: 100_000 })
    assert.equal(await value(url), null)
  })

  it('accepts nothing that is not a page', async () => {
    const url = 'https://a.example/foreign'
    const key = `content:${url}`
    await keep(url, pageOf(url, { body: Buffer.alloc(5000, 'abc') }))
    const whole = (await redis.getBuffer(key))!
    const headBytes = whole.readUInt32BE(5)
    const bomb = zstdCompressSync(Buffer.alloc(50_000_000))
    const changed = (edit: (head: Record<string, unknown>) => void) => {
      const head = JSON.parse(whole.toString('utf8', 9, 9 + headBytes))
      edit(head)
      const text = Buffer.from(JSON.stringify(head))
      const start = Buffer.from(whole.subarray(0, 9))
      start.writeUInt32BE(text.length, 5)
      return Buffer.concat([start, text, whole.subarray(9 + headBytes)])
    }
    const values: Record<string, Buffer> = {
      'the original’s': Buffer.from('<html>'),
      empty: Buffer.alloc(0),
      'cut short': whole.subarray(0, whole.length - 3),
      'cut in the head': whole.subarray(0, 40),
      'a head beyond the end': Buffer.concat([whole.subarray(0, 5), Buffer.alloc(4, 0xff), whole.subarray(9)]),
      'no JSON': Buffer.concat([whole.subarray(0, 9), Buffer.alloc(headBytes, 'x'), whole.subarray(9 + headBytes)]),
      'another length': changed((head) => Object.assign(head, { bodyBytes: 4999 })),
      'another type': changed((head) => Object.assign(head, { url: 7 })),
      'too large': changed((head) => Object.assign(head, { bodyBytes: 10 ** 12 })),
      'a bomb': Buffer.concat([whole.subarray(0, 9 + headBytes), bomb]),
    }
    await using cache = await open()
    assert.ok(await cache.get({ url }))
    for (const [what, bytes] of Object.entries(values)) {
      await redis.set(key, bytes)
      assert.equal(await cache.get({ url }), undefined, what)
    }
    await redis.del(key)
    await redis.hset(key, 'a', '1')
    assert.equal(await cache.get({ url }), undefined)
    await redis.del(key)
  })

  it('returns no page while Redis is down or hangs, reports it once, and recovers', async () => {
    await using own = await startRedis()
    const away: ScrapeError[] = []
    let backs = 0
    await using cache = await openRedisCache({
      url: own.url,
      onAway: (error) => away.push(error),
      onBack: () => backs++,
    })
    const url = 'https://a.example/away'
    const page = pageOf(url, { fetchedAtMs: Date.now() })
    cache.set({ url }, page)
    while ((await cache.get({ url })) === undefined) await delay(5)

    await own.stop('SIGKILL')
    for (let i = 0; i < 100; i++) assert.equal(await cache.get({ url }), undefined)
    cache.set({ url }, page)
    assert.deepEqual([away.length, backs, away[0]?.code], [1, 0, 'E_SERVICE'])

    await own.start()
    while ((await cache.get({ url })) === undefined) await delay(20) // it was saved in Redis's append-only file
    assert.deepEqual([away.length, backs], [1, 1])

    process.kill(own.pid!, 'SIGSTOP')
    try {
      for (let i = 0; i < 100; i++) assert.equal(await cache.get({ url }), undefined)
    } finally {
      process.kill(own.pid!, 'SIGCONT')
    }
    while ((await cache.get({ url })) === undefined) await delay(20)
    assert.deepEqual([away.length, backs], [2, 2])
  })

  it('cannot be opened if Redis is unreachable', async () => {
    await assert.rejects(open({ url: 'redis://127.0.0.1:1/0' }), { code: 'E_SERVICE' })
  })
})
