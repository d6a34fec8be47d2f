import assert from 'node:assert/strict'
import { test } from 'node:test'
import { guessList } from './guess-selectors.ts'

const NEXT = 'a[rel~="next"], a[rel~="prev"]'

function guess(start: string, next: string, ...paths: string[]) {
  const links = paths.map((path) => `<a href="${path}">x</a>`).join('')
  const page = { text: `${links}<a rel=next href="${next}">On</a>`, url: `http://shop.test${start}` }
  const { links: css, next: pages, example, listMatch, pageMatch } = guessList(page)
  assert.deepEqual([css, pages], [`a:not(${NEXT})`, NEXT])
  return { example: example?.replace('http://shop.test', ''), listMatch, pageMatch }
}

const things = (prefix: string, count = 5) => Array.from({ length: count }, (_, i) => `${prefix}${i + 11}`)

test('finds a pattern for a list with the page number in its path, and for its entries among stray links', () => {
  const both = { example: '/item/11', listMatch: '/list/:n', pageMatch: '/item/:id' }
  assert.deepEqual(guess('/list/1', '/list/2', '/list/3', '/about', ...things('/item/')), both)
  assert.deepEqual(guess('/page-1.html', '/page-2.html', ...things('/en/item/')), {
    example: '/en/item/11',
    listMatch: '/page-:n.html',
    pageMatch: undefined,
  })
})

test('keeps the path of a list whose pages differ in the query, even if it lies among its entries', () => {
  const among = guess('/shop/all', '/shop/all?page=2', '/shop/all?page=3', '/', ...things('/shop/'))
  assert.deepEqual(among, { example: '/shop/11', listMatch: '/shop/all', pageMatch: '/shop/:id' })
})

test('finds no pattern for a list whose start page differs from the rest', () => {
  const home = guess('/', '/list/2', '/list/1', '/list/3', ...things('/item/'))
  assert.deepEqual(home, { example: '/item/11', listMatch: undefined, pageMatch: '/item/:id' })
})

test('finds no pattern for entries with the same path as their list, since it would match both', () => {
  const none = { listMatch: undefined, pageMatch: undefined }
  assert.deepEqual(guess('/shop/1', '/shop/2', ...things('/shop/')), { example: '/shop/11', ...none })
  const byQuery = guess('/index.php', '/index.php?page=2', ...things('/index.php?thing='), '/about', '/terms')
  assert.deepEqual(byQuery, { example: '/index.php?thing=11', ...none })
})

test('does not narrow entries of two kinds, or of none, to one pattern', () => {
  const two = guess('/list/1', '/list/2', ...things('/book/', 4), ...things('/film/', 3))
  assert.deepEqual(two, { example: '/book/11', listMatch: '/list/:n', pageMatch: undefined })
  assert.equal(guess('/list/1', '/list/2', '/tea', '/cup', '/pot').pageMatch, undefined)
})

test('makes no pattern from a path that could be read as code', () => {
  const odd = guess("/it's/1", "/it's/2", ...things("/a'+evil+'/"), ...things('/:x/'), ...things('/*/'))
  assert.deepEqual([odd.listMatch, odd.pageMatch], [undefined, undefined])
})

test('prefers links that repeat one shape over a navigation', () => {
  const nav = ['/about', '/help/faq', '/contact', '/terms', '/jobs', '/press/kit', '/a/b', '/c/d']
  const list = (paths: string[]) => paths.map((path) => `<li><a href="${path}">x</a></li>`).join('')
  const text = `<ul>${list(nav)}</ul><div>${things('/item/', 6).map((path) => `<a href="${path}">x</a>`)}</div>`
  const { links, example } = guessList({ text, url: 'http://shop.test/' })
  assert.deepEqual([links, example], ['a', 'http://shop.test/item/11'])
})
