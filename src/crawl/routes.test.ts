import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as z from 'zod'
import { ScrapeError } from '../core/errors.ts'
import { defineScraper, type RouteDefinition } from '../core/scraper.ts'
import { compileRoutes, findRoute } from './routes.ts'

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
  it('fits the whole path and nothing more', () => {
    assert.deepEqual(match('/jobs', '/jobs'), {})
    assert.equal(match('/jobs', '/jobs/'), undefined)
    assert.equal(match('/jobs', '/jobs/7'), undefined)
    assert.equal(match('/jobs', '/old/jobs'), undefined)
    assert.equal(match('/jobs', '/Jobs'), undefined)
  })

  it('gives the parameters of a path by name', () => {
    assert.deepEqual(match('/job/:id', '/job/42'), { id: '42' })
    assert.deepEqual(match('/:shop/p/:sku_1', '/north/p/x-1'), { shop: 'north', sku_1: 'x-1' })
  })

  it('takes a parameter inside a segment', () => {
    assert.deepEqual(match('/c/:name/page-:n.html', '/c/toys/page-12.html'), { name: 'toys', n: '12' })
    assert.equal(match('/page-:n.html', '/page-12xhtml'), undefined)
    assert.deepEqual(match('/:from-:to', '/a-b-c'), { from: 'a', to: 'b-c' })
  })

  it('wants at least one character for a parameter, and no slash', () => {
    assert.equal(match('/job/:id', '/job/'), undefined)
    assert.equal(match('/job/:id', '/job/a/b'), undefined)
  })

  it('decodes parameters once, an encoded slash too, and keeps a stray % as it is', () => {
    assert.deepEqual(match('/t/:tag', '/t/caf%C3%A9%20%2F%3F'), { tag: 'café /?' })
    assert.deepEqual(match('/t/:tag', '/t/%2541'), { tag: '%41' })
    assert.deepEqual(match('/t/:tag', '/t/100%'), { tag: '100%' })
    assert.deepEqual(match('/t/:tag', '/t/%FF'), { tag: '%FF' })
  })

  it('lets * stand for anything, also nothing and slashes', () => {
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

  it('keeps parameters apart from what every object has', () => {
    const params = compile({ a: { match: '/:constructor' } })
      .get('a')!
      .match('/x')!
    assert.equal(params['constructor'], 'x')
    assert.equal(params['toString'], undefined)
    assert.equal(compile({ a: {} }).get('a')!.match('/x')!['toString'], undefined)
  })

  it('takes any path when there is none', () => {
    assert.deepEqual(match(undefined, '/whatever'), {})
  })

  it('refuses the longest path at once where each segment has one parameter', () => {
    const startedMs = performance.now()
    assert.equal(match('/:a/page-:b.html', `/x/page-${'-.htm'.repeat(1600)}`), undefined)
    assert.equal(match(`/${':a/'.repeat(40)}end`, `/${'x'.repeat(200).concat('/').repeat(40)}`), undefined)
    assert.ok(performance.now() - startedMs < 1000)
  })
})

describe('findRoute', () => {
  const url = (path: string) => new URL(path, 'https://a.test/')

  it('takes the first pattern that fits, in the order of the definition', () => {
    const routes = compile({ any: { match: '/*' }, job: { match: '/job/:id' } })
    assert.equal(findRoute(routes, 'shop', url('/job/1')).name, 'any')
    const other = compile({ job: { match: '/job/:id' }, any: { match: '/*' } })
    assert.equal(findRoute(other, 'shop', url('/job/1')).name, 'job')
  })

  it('takes the route without a pattern only when no pattern fits', () => {
    const routes = compile({ rest: {}, job: { match: '/job/:id' }, other: {} })
    assert.equal(findRoute(routes, 'shop', url('/job/1')).name, 'job')
    assert.equal(findRoute(routes, 'shop', url('/x')).name, 'rest')
  })

  it('looks at the path only', () => {
    const routes = compile({ list: { match: '/jobs' } })
    assert.equal(findRoute(routes, 'shop', url('/jobs?page=2')).name, 'list')
  })

  it('says which routes there are when none fits', () => {
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

it('no path keeps a pattern busy, however it is made', () => {
  // With an expression that could backtrack, the first of these took 27 s and the second more than a minute.
  const routes = compile({ pairs: { match: '/:a-:b/:c-:d/:e-:f/:g-:h/end' }, triple: { match: '/:a-:b-:c.html' } })
  assert.equal(routes.get('pairs')!.match(`/${`${'-'.repeat(100)}/`.repeat(4)}x`), undefined)
  assert.equal(routes.get('triple')!.match(`/${'-'.repeat(8000)}`), undefined)
  assert.deepEqual({ ...routes.get('triple')!.match('/q-w-e.r.html') }, { a: 'q', b: 'w', c: 'e.r' })
})
