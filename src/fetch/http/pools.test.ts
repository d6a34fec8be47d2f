import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openHostileSite } from '../../../test/site/hostile.ts'
import { openPools } from './pools.ts'

const options = { connectTimeoutMs: 100, allowPrivate: false, allowAddresses: [], connectionsPerHost: 2 }

describe('pools', () => {
  it('are one per origin', async () => {
    await using pools = openPools(options)
    assert.equal(pools.get('http://a.test'), pools.get('http://a.test'))
    assert.notEqual(pools.get('http://a.test'), pools.get('https://a.test'))
    assert.notEqual(pools.get('http://a.test'), pools.get('http://a.test:81'))
  })

  it('stay bounded, however many hosts there are', async () => {
    await using pools = openPools(options)
    const first = pools.get('http://host-0.test')
    for (let i = 1; i < 1500; i++) pools.get(`http://host-${i}.test`)
    assert.ok(pools.size <= 512)
    assert.ok(first.closed)
    assert.notEqual(pools.get('http://host-0.test'), first)
  })

  it('close at once in the end, even those that were evicted with a request in flight', async () => {
    await using site = await openHostileSite()
    const failed = Promise.withResolvers<Error>()
    const sent = Promise.withResolvers<void>()
    const pools = openPools({ ...options, allowPrivate: true })
    pools.get(site.origin).dispatch(
      { path: '/silent', method: 'GET' },
      {
        onRequestStart: () => sent.resolve(),
        onResponseStart() {},
        onResponseData() {},
        onResponseEnd() {},
        onResponseError: (_controller, error) => failed.resolve(error),
      },
    )
    await sent.promise
    for (let i = 0; i < 600; i++) pools.get(`http://host-${i}.test`)
    await pools[Symbol.asyncDispose]()
    assert.ok((await failed.promise) instanceof Error)
  })

  it('cannot be used once closed', async () => {
    const pools = openPools(options)
    const pool = pools.get('http://a.test')
    await pools[Symbol.asyncDispose]()
    assert.ok(pool.destroyed)
    assert.throws(() => pools.get('http://a.test'), { code: 'E_CONNECTION' })
  })
})
