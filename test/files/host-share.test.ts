/** Pages and files on one host: neither waits for the other longer than politeness requires. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRateLimit } from '../../src/fetch/rate/rate-limit.ts'
import { DownloadSlot } from '../../src/files/host-slot.ts'
import { never } from './rig.ts'

const file = { isFile: true }

function limit(perHost: number, concurrency: number) {
  return createRateLimit({ perHost: { concurrency: perHost, rps: 0, delayMs: 0 }, concurrency, crawlDelayMsMax: 0 })
}

test('takes no slot of pages for a file', async () => {
  using rates = limit(2, 1)
  using _download = await rates.acquire('files.example', never, file)
  assert.equal(rates.waitMs('pages.example'), 0)
  using _page = await rates.acquire('pages.example', never)
  assert.equal(rates.waitMs('files.example', file), Number.POSITIVE_INFINITY, 'one of two is left to pages')
  assert.equal(rates.waitMs('other.example', file), 0, 'and pages take none of files')
})

test('leaves one slot of a host to pages, which overtake waiting files', async () => {
  using rates = limit(3, 10)
  const downloads = [await rates.acquire('a.example', never, file), await rates.acquire('a.example', never, file)]
  const third = rates.acquire('a.example', never, file)
  assert.deepEqual(rates.busyHosts(), [])
  assert.equal(rates.waitMs('a.example'), 0)
  const page = await rates.acquire('a.example', never)
  assert.deepEqual(rates.busyHosts(), ['a.example'])
  page[Symbol.dispose]()
  downloads[0]![Symbol.dispose]()
  using _third = await third
  downloads[1]![Symbol.dispose]()
})

test('has one slot for files even on a host with one, and pages come next', async () => {
  using rates = limit(1, 10)
  const download = await rates.acquire('a.example', never, file)
  const page = rates.acquire('a.example', never)
  assert.equal(rates.waitMs('a.example'), Number.POSITIVE_INFINITY)
  download[Symbol.dispose]()
  using _page = await page
})

test('starts a file although all slots of pages are taken and pages wait', async () => {
  using rates = limit(4, 1)
  const page = await rates.acquire('a.example', never)
  const waiting = rates.acquire('a.example', never)
  using _download = await rates.acquire('a.example', never, file)
  page[Symbol.dispose]()
  using _next = await waiting
})

test('returns a slot that is granted after the job has ended', async () => {
  using rates = limit(1, 10)
  const first = await rates.acquire('a.example', never)
  const place = new DownloadSlot(rates, async () => {}, never)
  const entering = place.enter('http://a.example/x')
  await Promise.resolve()
  place[Symbol.dispose]() // its process died while it asked about a redirect
  first[Symbol.dispose]()
  await entering
  assert.equal(rates.waitMs('a.example'), 0)
})
