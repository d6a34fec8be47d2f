import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Page } from '../../core/page.ts'
import { HttpPage, type PageParts } from '../http/http-page.ts'
import { type CacheOptions, createMemoryCache, type ResponseCache } from './cache.ts'
import { openSqliteCache } from './sqlite-cache.ts'

const NOW_MS = 1_700_000_000_000
const URL_A = 'https://a.example/x'

function pageWith(parts: Partial<PageParts> = {}): Page {
  return new HttpPage({
    requestedUrl: URL_A,
    url: 'https://a.example/y',
    redirects: [URL_A],
    status: 200,
    headers: { 'content-type': 'text/html; charset=windows-1252', headers: 'a header of this name' },
    body: Buffer.from([0x63, 0x61, 0x66, 0xe9]),
    contentType: 'text/html',
    charset: 'windows-1252',
    wireBytes: 3,
    timings: { firstByteMs: 5, totalMs: 7 },
    fetchedAtMs: NOW_MS,
    ...parts,
  })
}

const kinds: Record<string, (t: TestContext, options: CacheOptions) => ResponseCache> = {
  memory: (_, options) => createMemoryCache(options),
  sqlite: (t, options) => openSqliteCache(join(tempFolder(t), 'cache.db'), options),
}

function tempFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'cache-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return folder
}

for (const [kind, open] of Object.entries(kinds)) {
  const given = (t: TestContext, options: CacheOptions = {}) => {
    const time = { nowMs: NOW_MS }
    const cache = open(t, { now: () => time.nowMs, ...options })
    t.after(() => cache[Symbol.dispose]())
    return { cache, time }
  }

  test(`${kind}: returns the stored page, marked as from the cache`, (t) => {
    const { cache } = given(t)
    const page = pageWith()
    cache.set({ url: URL_A }, page)
    const found = cache.get({ url: URL_A })!
    assert.equal(found.fromCache, true)
    assert.equal(found.text, 'café')
    assert.equal(found.requestedUrl, URL_A)
    for (const name of ['url', 'redirects', 'status', 'headers', 'body', 'contentType', 'charset'] as const) {
      assert.deepEqual(found[name], page[name], name)
    }
    assert.deepEqual([found.bytes, found.timings, found.fetchedAtMs], [page.bytes, page.timings, page.fetchedAtMs])
  })

  test(`${kind}: expires a page after 60 s, or after freshMs`, (t) => {
    for (const [freshMs, ms] of [
      [undefined, 60_000],
      [5000, 5000],
    ] as const) {
      const { cache, time } = given(t, freshMs === undefined ? {} : { freshMs })
      cache.set({ url: URL_A }, pageWith())
      time.nowMs = NOW_MS + ms - 1
      assert.ok(cache.get({ url: URL_A }))
      time.nowMs = NOW_MS + ms
      assert.equal(cache.get({ url: URL_A }), undefined)
      time.nowMs = NOW_MS - 3_600_000
      assert.equal(cache.get({ url: URL_A }), undefined, 'a page of the future is no page')
    }
  })

  test(`${kind}: keeps successful pages only`, (t) => {
    const { cache } = given(t)
    for (const status of [201, 204, 203, 404, 500]) cache.set({ url: URL_A }, pageWith({ status }))
    assert.equal(cache.get({ url: URL_A }), undefined)
  })

  test(`${kind}: keeps what belongs to one visitor under that visitor's session only`, (t) => {
    const { cache } = given(t)
    const personal = pageWith({ headers: { 'set-cookie': ['id=1'] } })
    const credentials = { authorization: 'Bearer x' }
    cache.set({ url: URL_A }, personal)
    cache.set({ url: URL_A, headers: credentials }, pageWith())
    cache.set({ url: URL_A, headers: { cookie: 'id=1' } }, pageWith())
    for (const headers of [undefined, credentials, { cookie: 'id=1' }]) {
      assert.equal(cache.get(headers === undefined ? { url: URL_A } : { url: URL_A, headers }), undefined)
    }
    cache.set({ url: URL_A, session: 'anna', headers: credentials }, personal)
    assert.ok(cache.get({ url: URL_A, session: 'anna', headers: credentials }))
    assert.equal(cache.get({ url: URL_A, session: 'ben', headers: credentials }), undefined)
    assert.equal(cache.get({ url: URL_A, session: 'anna' }), undefined)
    assert.equal(cache.get({ url: URL_A }), undefined)
  })

  test(`${kind}: distinguishes requests with different headers`, (t) => {
    const { cache } = given(t)
    cache.set({ url: URL_A, headers: { 'accept-language': 'de', a: '1' } }, pageWith())
    assert.equal(cache.get({ url: URL_A }), undefined)
    assert.equal(cache.get({ url: URL_A, headers: { 'accept-language': 'fr', a: '1' } }), undefined)
    assert.ok(cache.get({ url: URL_A, headers: { a: '1', 'accept-language': 'de' } }))
  })

  test(`${kind}: stays within its byte limit by evicting the oldest pages`, (t) => {
    const { cache } = given(t, { bytesMax: 1_000_000 })
    const urlOf = (i: number) => `https://a.example/${i}`
    for (let i = 0; i < 50; i++) {
      cache.set({ url: urlOf(i) }, pageWith({ body: Buffer.alloc(98_000, 'x'), fetchedAtMs: NOW_MS - 100 + i }))
    }
    cache.set({ url: 'https://a.example/huge' }, pageWith({ body: Buffer.alloc(1_000_000) }))
    const kept = Array.from({ length: 50 }, (_, i) => i).filter((i) => cache.get({ url: urlOf(i) }) !== undefined)
    assert.deepEqual(kept, [40, 41, 42, 43, 44, 45, 46, 47, 48, 49])
    assert.equal(cache.get({ url: 'https://a.example/huge' }), undefined)
  })
}

test('sqlite: keeps pages from one process to the next', (t) => {
  const path = join(tempFolder(t), 'cache.db')
  const options = { now: () => NOW_MS }
  {
    using cache = openSqliteCache(path, options)
    cache.set({ url: URL_A }, pageWith())
  }
  using cache = openSqliteCache(path, options)
  assert.equal(cache.get({ url: URL_A })?.text, 'café')
})
