import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
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
    for (let i = 1; i < 5000; i++) pools.get(`http://host-${i}.test`)
    assert.ok(pools.size <= 1024)
    assert.ok(first.closed)
    assert.notEqual(pools.get('http://host-0.test'), first)
  })

  it('are no more once closed', async () => {
    const pools = openPools(options)
    const pool = pools.get('http://a.test')
    await pools[Symbol.asyncDispose]()
    assert.ok(pool.destroyed)
    assert.throws(() => pools.get('http://a.test'), { code: 'E_CONNECTION' })
  })
})
