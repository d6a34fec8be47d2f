import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { baseOf, resolveUrl } from './resolve-url.ts'

const bases = fc.constantFrom(
  'http://h/',
  'https://h.example:8080/a/b/c.html?q=1#f',
  'http://user:pass@h/a/',
  'http://h/a//b/',
  'http://h?x/y',
)
const piece = fc.constantFrom(
  'a',
  'b.html',
  '..',
  '.',
  '/',
  '//',
  '?',
  '#',
  'x=1&y=2',
  '../',
  './',
  '...',
  '.a',
  'a.',
  ':',
  '%2e',
  ' ',
  'é',
  '\\',
  '@',
  "'",
  'http:',
  '~u',
)

test('joins links as the URL standard does', () => {
  fc.assert(
    fc.property(bases, fc.array(piece, { maxLength: 6 }), (base, pieces) => {
      const link = pieces.join('')
      assert.equal(resolveUrl(link, baseOf(base)!), URL.parse(link, base)?.href)
    }),
    { numRuns: 5000 },
  )
})

test('takes only http(s) URLs as a base', () => {
  for (const href of ['javascript:alert(1)', 'data:text/html,x', 'file:///etc/', 'ftp://h/', 'nonsense', '']) {
    assert.equal(baseOf(href), undefined, href)
  }
})
