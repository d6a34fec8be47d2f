import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openHostileSite } from '../../../test/site/hostile.ts'
import { BodyRoom } from './body-room.ts'
import { openHttp } from './http.ts'

const MB = 1_048_576

describe('room for large bodies', () => {
  it('lets bodies in until it is full, then one by one as others leave, first come, first served', async () => {
    const room = new BodyRoom(10 * MB)
    const entered: string[] = []
    const enter = (name: string, bytes: number) => {
      const place = room.newPlace()
      const waiting = place.take(bytes)
      if (waiting === undefined) entered.push(name)
      else void waiting.then(() => entered.push(name))
      return place
    }
    const first = enter('first', 6 * MB)
    const second = enter('second', 4 * MB)
    enter('third', 8 * MB)
    enter('fourth', 2 * MB)
    assert.deepEqual(entered, ['first', 'second'])
    first[Symbol.dispose]()
    await null
    assert.deepEqual(entered, ['first', 'second'], 'the fourth does not overtake the third')
    second[Symbol.dispose]()
    await null
    assert.deepEqual(entered, ['first', 'second', 'third', 'fourth'])
    assert.equal(room.usedBytes, 10 * MB)
  })

  it('gives all of the room to a body that is larger', () => {
    const room = new BodyRoom(MB)
    assert.equal(room.newPlace().take(100 * MB), undefined)
    assert.equal(room.usedBytes, MB)
  })

  it('takes back room that a body did not need, and all of it if the body turns out to be small', () => {
    const room = new BodyRoom(10 * MB)
    const place = room.newPlace()
    void place.take(8 * MB)
    place.shrinkTo(3 * MB)
    assert.equal(room.usedBytes, 3 * MB)
    place.shrinkTo(1000)
    assert.equal(room.usedBytes, 0)
    place[Symbol.dispose]()
    place[Symbol.dispose]()
    assert.equal(room.usedBytes, 0)
  })

  it('forgets a body that leaves while it is waiting', async () => {
    const room = new BodyRoom(4 * MB)
    const first = room.newPlace()
    const second = room.newPlace()
    const third = room.newPlace()
    void first.take(4 * MB)
    void second.take(4 * MB)
    const waiting = third.take(4 * MB)
    second[Symbol.dispose]()
    first[Symbol.dispose]()
    await waiting
    assert.equal(room.usedBytes, 4 * MB)
  })
})

describe('an HTTP client', () => {
  const TIMEOUT_MS = 1000
  const task = (id: string) => ({ task: { id, attempt: 1 } })
  const never = new AbortController().signal

  async function open() {
    const site = await openHostileSite()
    const bodyRoom = new BodyRoom(3 * MB)
    const http = openHttp({
      userAgent: 'SluiceTest/1.0',
      timeoutMs: TIMEOUT_MS,
      connectTimeoutMs: 1000,
      bodyBytesMax: 3 * MB,
      redirectsMax: 5,
      connectionsPerHost: 8,
      retryAfterMsMax: 60_000,
      allowPrivate: true,
      allowAddresses: [],
      bodyRoom,
    })
    return {
      site,
      bodyRoom,
      http,
      async [Symbol.asyncDispose]() {
        await http[Symbol.asyncDispose]()
        await site[Symbol.asyncDispose]()
      },
    }
  }

  it('reads a large page only if there is room for it, and small ones in the meantime; the deadline is suspended', async () => {
    await using opened = await open()
    const { http, site } = opened
    const large = site.url('large', { bytes: String(2 * MB) })
    const first = await http.exchange({ url: large, ...task('1') }, never)
    let isRead = false
    const second = http.exchange({ url: `${large}&second`, ...task('2') }, never).then((page) => {
      isRead = true
      return page
    })
    while (site.requests.length < 2) await sleep(1)
    const small = await http.exchange({ url: site.url('page'), ...task('3') }, never)
    assert.equal(small.status, 200)
    await sleep(TIMEOUT_MS + 100)
    assert.equal(isRead, false)
    first.release()
    assert.equal((await second).body.length, 2 * MB)
  })

  it('gives room back for every response that does not become a page', async () => {
    await using opened = await open()
    const { http, site, bodyRoom } = opened
    for (const name of ['bomb-gzip', 'bomb-double', 'endless-chunked', 'endless-until-close']) {
      await assert.rejects(http.exchange({ url: site.url(name), ...task(name) }, never), { code: 'E_TOO_LARGE' })
      assert.equal(bodyRoom.usedBytes, 0, name)
    }
  })

  it('gives up a page that waits for room when it is aborted', async () => {
    await using opened = await open()
    const { http, site, bodyRoom } = opened
    const first = await http.exchange({ url: site.url('large', { bytes: String(2 * MB) }), ...task('1') }, never)
    const stop = new AbortController()
    const second = http.exchange({ url: site.url('bomb-gzip'), ...task('2') }, stop.signal)
    const third = http.exchange({ url: site.url('large', { bytes: String(2 * MB) }), ...task('3') }, stop.signal)
    while (site.requests.length < 3) await sleep(1)
    stop.abort(new Error('enough'))
    await assert.rejects(second, /enough/)
    await assert.rejects(third, /enough/)
    first.release()
    assert.equal(bodyRoom.usedBytes, 0)
  })
})
