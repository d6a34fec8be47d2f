import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import * as z from 'zod'
import { cpuMs } from '../../test/cpu-time.ts'
import { ScrapeError } from '../core/errors.ts'
import { defineScraper, type RouteDefinition } from '../core/scraper.ts'
import { claimingRoute, compileRoutes, findRoute } from './routes.ts'

function compile(routes: Record<string, RouteDefinition>) {
  const handlers = Object.fromEntries(Object.keys(routes).map((name) => [name, () => {}]))
  return compileRoutes(defineScraper({ name: 'shop', item: z.object({}), routes, start() {}, handlers }))
}

/** The parameters of `path` under `pattern`, as a plain object. */
function match(pattern: string | undefined, path: string): Record<string, string> | undefined {
  const found = compile({ a: { match: pattern } })
    .get('a')!
    .match(path)
  return found === undefined ? undefined : { ...found }
}

describe('a route’s pattern', () => {
  it('matches the whole path and nothing more', () => {
    assert.deepEqual(match('/jobs', '/jobs'), {})
    assert.equal(match('/jobs', '/jobs/'), undefined)
    assert.equal(match('/jobs', '/jobs/7'), undefined)
    assert.equal(match('/jobs', '/old/jobs'), undefined)
    assert.equal(match('/jobs', '/Jobs'), undefined)
  })

  it('returns the parameters of a path by name', () => {
    assert.deepEqual(match('/job/:id', '/job/42'), { id: '42' })
    assert.deepEqual(match('/:shop/p/:sku_1', '/north/p/x-1'), { shop: 'north', sku_1: 'x-1' })
  })

  it('accepts a parameter inside a segment', () => {
    assert.deepEqual(match('/c/:name/page-:n.html', '/c/toys/page-12.html'), { name: 'toys', n: '12' })
    assert.equal(match('/page-:n.html', '/page-12xhtml'), undefined)
    assert.deepEqual(match('/:from-:to', '/a-b-c'), { from: 'a', to: 'b-c' })
  })

  it('requires at least one character for a parameter, and no slash', () => {
    assert.equal(match('/job/:id', '/job/'), undefined)
    assert.equal(match('/job/:id', '/job/a/b'), undefined)
  })

  it('decodes parameters once, including an encoded slash, and keeps a stray %', () => {
    assert.deepEqual(match('/t/:tag', '/t/caf%C3%A9%20%2F%3F'), { tag: 'café /?' })
    assert.deepEqual(match('/t/:tag', '/t/%2541'), { tag: '%41' })
    assert.deepEqual(match('/t/:tag', '/t/100%'), { tag: '100%' })
    assert.deepEqual(match('/t/:tag', '/t/%FF'), { tag: '%FF' })
  })

  it('lets * match anything, including nothing and slashes', () => {
    assert.deepEqual(match('/docs/*', '/docs/a/b.html'), {})
    assert.deepEqual(match('/docs/*', '/docs/'), {})
    assert.deepEqual(match('/*/:id', '/a/b/c'), { id: 'c' })
    assert.equal(match('/docs/*', '/doc/a'), undefined)
  })

  it('takes characters with a meaning in regular expressions literally', () => {
    assert.deepEqual(match('/a+(b)[c].{d}|$', '/a+(b)[c].{d}|$'), {})
    assert.equal(match('/a.b', '/axb'), undefined)
    assert.equal(match('/a+', '/aa'), undefined)
  })

  it('keeps parameters apart from the properties every object has', () => {
    const params = compile({ a: { match: '/:constructor' } })
      .get('a')!
      .match('/x')!
    assert.equal(params['constructor'], 'x')
    assert.equal(params['toString'], undefined)
    assert.equal(compile({ a: {} }).get('a')!.match('/x')!['toString'], undefined)
  })

  it('matches any path if there is none', () => {
    assert.deepEqual(match(undefined, '/whatever'), {})
  })

  it('rejects the longest path at once if each segment has one parameter', () => {
    const tookMs = cpuMs(() => {
      assert.equal(match('/:a/page-:b.html', `/x/page-${'-.htm'.repeat(1600)}`), undefined)
      assert.equal(match(`/${':a/'.repeat(40)}end`, `/${'x'.repeat(200).concat('/').repeat(40)}`), undefined)
    })
    assert.ok(tookMs < 1000, `took ${tookMs} ms`)
  })
})

/** A path, the pattern that claims it, and another one that matches it as well. */
const SPECIFICITY: readonly (readonly [path: string, narrow: string, wide: string])[] = [
  ['/job/1', '/job/:id', '/*'],
  ['/job/1', '/job/:id', '/:section/:id'],
  ['/job/new', '/job/new', '/job/:id'],
  ['/', '/', '/*'],
  ['/docs/', '/docs/', '/docs/*'],
  ['/docs/a/b', '/docs/a/*', '/docs/*'],
  ['/docs/a/b', '/docs/*', '/*/b'],
  ['/page-2.html', '/page-:n.html', '/:slug'],
  ['/page-2.html', '/page-:n.html', '/:name.html'],
  ['/page-2', '/page-*', '/*'],
  ['/b/x', '/b/:c', '/:a/x'],
  ['/a/b/c', '/a/*/:id', '/a/*'],
  ['/a/b', '/a/:b', '/a/*'],
]

describe('claimingRoute', () => {
  const NAMES = ['list', 'item', 'other']
  const segment = fc.constantFrom('a', 'b', ':x', 'a-:x', ':x-b', 'a*', '*')
  const pattern = fc
    .array(segment, { minLength: 1, maxLength: 3 })
    .map((segments) => `/${segments.join('/')}`)
    .filter((text) => text.split('*').length <= 2)
  const path = fc
    .array(fc.constantFrom('a', 'b', 'a-b', 'b-b', 'ab', ''), { maxLength: 3 })
    .map((segments) => `/${segments.join('/')}`)

  it('does not depend on the order of the routes, and the named route wins among equal patterns', () => {
    fc.assert(
      fc.property(fc.array(pattern, { minLength: 3, maxLength: 3 }), path, (patterns, pathname) => {
        const definition = NAMES.map((name, i) => [name, { match: patterns[i]! }] as const)
        const claimed = [definition, definition.toReversed(), [definition[1]!, definition[2]!, definition[0]!]].map(
          (order) => claimingRoute(compile(Object.fromEntries(order)), pathname),
        )
        const shapes = claimed.map((route) => JSON.stringify(route?.specificity))
        assert.equal(new Set(shapes).size, 1)
        const routes = compile(Object.fromEntries(definition))
        for (const named of routes.values()) {
          const chosen = claimingRoute(routes, pathname, named)
          const isEqual = JSON.stringify(named.specificity) === shapes[0] && named.match(pathname) !== undefined
          if (isEqual) assert.equal(chosen, named)
          assert.equal(JSON.stringify(chosen?.specificity), shapes[0])
          if (chosen !== undefined) assert.notEqual(chosen.match(pathname), undefined)
        }
      }),
    )
  })

  it('claims nothing for routes without a pattern', () => {
    assert.equal(claimingRoute(compile({ any: {}, job: { match: '/job/:id' } }), '/about'), undefined)
  })
})

describe('findRoute', () => {
  const url = (path: string) => new URL(path, 'https://a.test/')

  it('takes the most specific matching pattern, whatever the order of the definition', () => {
    for (const [path, narrow, wide] of SPECIFICITY) {
      for (const patterns of [
        { narrow: { match: narrow }, wide: { match: wide } },
        { wide: { match: wide }, narrow: { match: narrow } },
      ])
        assert.equal(findRoute(compile(patterns), 'shop', url(path)).name, 'narrow', `${path}: ${narrow} or ${wide}`)
    }
  })

  it('takes the first of equally specific patterns', () => {
    const routes = compile({ sku: { match: '/p/:sku' }, id: { match: '/p/:id' } })
    assert.equal(findRoute(routes, 'shop', url('/p/7')).name, 'sku')
  })

  it('takes the route without a pattern only if no pattern matches', () => {
    const routes = compile({ rest: {}, job: { match: '/job/:id' }, other: {} })
    assert.equal(findRoute(routes, 'shop', url('/job/1')).name, 'job')
    assert.equal(findRoute(routes, 'shop', url('/x')).name, 'rest')
  })

  it('looks at the path only', () => {
    const routes = compile({ list: { match: '/jobs' } })
    assert.equal(findRoute(routes, 'shop', url('/jobs?page=2')).name, 'list')
  })

  it('names the existing routes if none matches', () => {
    const routes = compile({ list: { match: '/jobs' }, job: { match: '/job/:id' } })
    assert.throws(
      () => findRoute(routes, 'shop', url('/about')),
      (error: ScrapeError) => {
        assert.ok(error instanceof ScrapeError)
        assert.equal(error.code, 'E_ROUTE_UNMATCHED')
        assert.match(error.message, /"shop".*https:\/\/a\.test\/about/)
        assert.deepEqual(error.details.notes, ['routes: list /jobs · job /job/:id'])
        return true
      },
    )
  })
})

it('no malicious path keeps a pattern busy', () => {
  // With an expression that could backtrack, the first of these took 27 s and the second more than a minute.
  const routes = compile({ pairs: { match: '/:a-:b/:c-:d/:e-:f/:g-:h/end' }, triple: { match: '/:a-:b-:c.html' } })
  assert.equal(routes.get('pairs')!.match(`/${`${'-'.repeat(100)}/`.repeat(4)}x`), undefined)
  assert.equal(routes.get('triple')!.match(`/${'-'.repeat(8000)}`), undefined)
  assert.deepEqual({ ...routes.get('triple')!.match('/q-w-e.r.html') }, { a: 'q', b: 'w', c: 'e.r' })
})
