import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { ErrorCode } from '../../core/error-table.ts'
import { ScrapeError } from '../../core/errors.ts'
import type { RunEvent } from '../../core/events.ts'
import { createIdentities, type IdentitiesOptions } from './identities.ts'
import type { PinnedIdentity } from './identity.ts'
import { IdentityCookies } from './identity-cookies.ts'
import { openProxyPool } from './proxy-pool.ts'

const never = new AbortController().signal
const addresses = { connectTimeoutMs: 1000, allowPrivate: true, allowAddresses: [] }

function given(t: TestContext, { count = 3, ...options }: Partial<IdentitiesOptions> & { count?: number } = {}) {
  const clock = { nowMs: 0 }
  const events: RunEvent[] = []
  const tiers = [Array.from({ length: count }, (_, i) => `http://10.0.0.${i + 1}:3128`)]
  const proxies = count === 0 ? {} : { proxies: openProxyPool({ tiers, addresses }) }
  const identities = createIdentities({
    mode: 'browser',
    ...proxies,
    events: { emit: (event) => void events.push(event) },
    now: () => clock.nowMs,
    ...options,
  })
  t.after(() => identities[Symbol.dispose]())
  const take = (url = 'http://a.test/', session?: string) =>
    identities.take({ url, ...(session === undefined ? {} : { session }) }, never) as PinnedIdentity
  const retired = () => events.flatMap((event) => (event.type === 'identity.retired' ? [event.id] : []))
  return { identities, take, events, retired, clock }
}

const error = (code: ErrorCode) => new ScrapeError(code, code)

describe('an identity', () => {
  it('keeps its proxy, profile and cookies together', (t) => {
    const { take } = given(t)
    const seen = new Map<string, PinnedIdentity>()
    for (let i = 0; i < 200; i++) {
      const one = take()
      const known = seen.get(one.id) ?? one
      seen.set(one.id, one)
      assert.deepEqual([one.proxy, one.profile, one.cookies], [known.proxy, known.profile, known.cookies])
    }
    assert.ok(seen.size >= 3)
  })

  it('avoids the profile and proxy a request was told to avoid, as long as there is another', (t) => {
    for (const strategy of ['round-robin', 'until-failure'] as const) {
      const { identities, take } = given(t, { strategy })
      const known = [take(), take()]
      const avoid = new Set(known.flatMap(({ proxy, profile }) => [proxy!.name, profile!.name]))
      for (let i = 0; i < 20; i++) {
        const other = identities.take({ url: 'http://a.test/', avoid }, never) as PinnedIdentity
        assert.equal(avoid.has(other.proxy!.name), false)
        assert.equal(avoid.has(other.profile!.name), false)
      }
      const all = new Set(['10.0.0.1:3128', '10.0.0.2:3128', '10.0.0.3:3128'])
      assert.ok(identities.take({ url: 'http://a.test/', avoid: all }, never))
    }
  })

  it('is retired at once and for good by a block, and only by a block', (t) => {
    const { identities, take, retired } = given(t)
    for (const code of ['E_NOT_FOUND', 'E_RATE_LIMITED', 'E_SERVER'] as const)
      identities.onError(take(), 'http://a.test/', error(code))
    assert.deepEqual(retired(), [])
    for (const code of ['E_BLOCKED', 'E_CAPTCHA', 'E_FORBIDDEN', 'E_UNAUTHORIZED'] as const) {
      const url = `http://${code}.test/` // each proxy rests for the site that blocked it
      const one = take(url)
      identities.onError(one, url, error(code))
      assert.equal(retired().at(-1), one.id)
      for (let i = 0; i < 50; i++) assert.notEqual(take(url), one)
    }
  })

  it('is retired by errors that successes do not make up for', (t) => {
    const { identities, take, retired } = given(t, { count: 0 })
    const one = take()
    for (let i = 0; i < 4; i++) {
      identities.onError(one, 'http://a.test/', error('E_CONNECTION'))
      identities.onGood(one, 'http://a.test/')
    }
    assert.deepEqual([one.errorScore, retired()], [2, []])
    identities.onError(one, 'http://a.test/', error('E_CONNECTION'))
    assert.deepEqual(retired(), [one.id])
  })

  it('is used at most 50 times, and for at most 50 minutes', (t) => {
    const { take, clock } = given(t, { count: 0 })
    const uses = new Map<string, number>()
    for (let i = 0; i < 2000; i++) {
      const { id } = take()
      uses.set(id, (uses.get(id) ?? 0) + 1)
    }
    assert.equal(Math.max(...uses.values()), 50)
    const before = new Set(Array.from({ length: 8 }, () => take().id))
    clock.nowMs += 3_000_000
    const after = Array.from({ length: 8 }, () => take().id)
    assert.ok(after.every((id) => !before.has(id)))
  })

  it('that is our own exists once behind each proxy, and does not wear out', (t) => {
    const { take, clock } = given(t, { mode: 'honest' })
    const seen = new Set<string>()
    for (let i = 0; i < 1000; i++) {
      clock.nowMs += 10_000
      seen.add(take().id)
    }
    assert.equal(seen.size, 3)
  })

  it('is one of a bounded number', (t) => {
    const { identities, take } = given(t, { count: 20, identitiesMax: 40 })
    for (let i = 0; i < 1000; i++) take(`http://a.test/${i}`)
    assert.ok(identities.size <= 40, `${identities.size}`)
    for (let i = 0; i < 1000; i++) take('http://a.test/', `user-${i}`)
    assert.ok(identities.size <= 80, `${identities.size}`)
  })
})

describe('another identity', () => {
  it('is available while another proxy is accepted, or we pass for browsers', (t) => {
    const { identities, take } = given(t, { mode: 'honest', count: 2 })
    assert.equal(identities.hasOthers('a.test'), true)
    identities.onError(take(), 'http://a.test/', error('E_CAPTCHA'))
    assert.deepEqual([identities.hasOthers('a.test'), identities.hasOthers('b.test')], [false, true])
    assert.equal(given(t, { mode: 'honest', count: 0 }).identities.hasOthers('a.test'), false)
    assert.equal(given(t, { mode: 'browser', count: 0 }).identities.hasOthers('a.test'), true)
    const siteOf = () => ({ proxies: 'off' }) as const
    assert.equal(given(t, { mode: 'honest', siteOf }).identities.hasOthers('a.test'), false)
  })
})

describe('the next attempt at a blocked page', () => {
  it('is made through another proxy, as another browser', (t) => {
    const { identities, take } = given(t)
    for (let i = 0; i < 20; i++) {
      const url = `http://a${i}.test/`
      const first = take(url)
      identities.onError(first, url, error('E_CAPTCHA'))
      const second = take(url)
      assert.notEqual(second.proxy, first.proxy)
      assert.notEqual(second.profile, first.profile)
    }
  })
})

describe('a named user', () => {
  it('has one proxy and one profile, in every worker, and manages their own cookies', (t) => {
    const { take } = given(t)
    const elsewhere = given(t)
    const anna = take('http://a.test/', 'anna')
    for (let i = 0; i < 200; i++) assert.equal(take(`http://a.test/${i}`, 'anna'), anna)
    const same = elsewhere.take('http://a.test/', 'anna')
    assert.deepEqual([same.proxy!.name, same.profile], [anna.proxy!.name, anna.profile])
    assert.equal(anna.cookies, undefined)
  })

  it('gets another identity when a site has blocked theirs', (t) => {
    const { identities, take } = given(t)
    const before = take('http://a.test/', 'anna')
    identities.onError(before, 'http://a.test/', error('E_BLOCKED'))
    assert.notEqual(take('http://a.test/', 'anna'), before)
  })
})

describe('strategies', () => {
  it('until-failure keeps one identity for a site until it fails', (t) => {
    const { identities, take } = given(t, { strategy: 'until-failure' })
    const first = take()
    for (let i = 0; i < 20; i++) assert.equal(take(`http://a.test/${i}`), first)
    identities.onError(first, 'http://a.test/x', error('E_BLOCKED'))
    const second = take()
    assert.notEqual(second, first)
    assert.equal(take(), second)
  })

  it('random and round-robin use all', (t) => {
    for (const strategy of ['random', 'round-robin'] as const) {
      const { take } = given(t, { strategy })
      const proxies = new Set(Array.from({ length: 60 }, () => take().proxy))
      assert.equal(proxies.size, 3)
    }
  })
})

describe('a site with its own settings', () => {
  it('may be requested directly, or as ourselves', (t) => {
    const siteOf = (host: string) =>
      host === 'own.test' ? ({ proxies: 'off', identity: 'honest' } as const) : undefined
    const { take } = given(t, { siteOf })
    assert.deepEqual([take('http://own.test/').proxy, take('http://own.test/').profile], [undefined, undefined])
    assert.ok(take('http://a.test/').proxy !== undefined && take('http://a.test/').profile !== undefined)
  })

  it('gets only profiles our browser can show if pages are opened in it', (t) => {
    const { take } = given(t, { needsChromium: true })
    for (let i = 0; i < 100; i++) assert.ok(take().profile!.isChromium)
  })
})

describe('the cookies of an identity', () => {
  const at = (url: string) => new URL(url)

  it('are kept from page to page, for the sites that set them', () => {
    const cookies = new IdentityCookies()
    cookies.store(['a=1; Path=/', 'b=2; Domain=example.com'], at('https://www.example.com/x'))
    assert.equal(cookies.headerFor(at('https://www.example.com/y')), 'a=1; b=2')
    assert.equal(cookies.headerFor(at('https://shop.example.com/')), 'b=2')
    assert.equal(cookies.headerFor(at('https://example.org/')), '')
    cookies.store('a=; Max-Age=0; Path=/', at('https://www.example.com/'))
    assert.equal(cookies.headerFor(at('https://www.example.com/')), 'b=2')
  })

  it('are rejected for a public suffix', () => {
    const cookies = new IdentityCookies()
    cookies.store('evil=1; Domain=co.uk', at('https://a.co.uk/'))
    assert.equal(cookies.headerFor(at('https://b.co.uk/')), '')
  })

  it('stay bounded, whatever a site sets', () => {
    const cookies = new IdentityCookies()
    for (let i = 0; i < 10_000; i += 50)
      cookies.store(Array.from({ length: 50 }, (_, j) => `c${i + j}=${'x'.repeat(100)}`), at('https://a.test/')) // biome-ignore format: one line
    assert.ok(cookies.headerFor(at('https://a.test/')).length < 300_000)
    for (let i = 0; i < 1000; i++) cookies.store('a=1', at(`https://site-${i}.test/`))
    assert.equal(cookies.headerFor(at('https://site-1.test/')), '')
  })
})
