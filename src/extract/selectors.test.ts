import assert from 'node:assert/strict'
import { test } from 'node:test'
import { load } from 'cheerio/slim'
import type { Element } from 'domhandler'
import fc from 'fast-check'
import { parseDocument } from 'htmlparser2'
import { release, select } from './html.ts'
import { messyHtml, selector } from './messy-html.test-kit.ts'
import { compile } from './selector.ts'

const fold = (text: string): string => text.replace(/\s+/g, ' ').trim()
const isKnownDifference = (html: string): boolean => /<\/?[a-z]*&/i.test(html)

/** cheerio on htmlparser2's own tree: none of our code is involved. */
const reference = (html: string) => load(parseDocument(html) as never)

test('finds what cheerio finds, for any selector in any messy page', () => {
  fc.assert(
    fc.property(messyHtml, fc.array(selector, { minLength: 1, maxLength: 8 }), (html, selectors) => {
      fc.pre(!isKnownDifference(html))
      const $ = select(html, 'http://h/')
      const cheerio = reference(html)
      for (const css of selectors) {
        assert.notEqual(compile(css).alternatives, undefined, `${css} belongs to the fast tier`)
        const theirs = cheerio<Element, string>(css).toArray()
        const ours = $.all(css)
        assert.deepEqual(
          ours.map((it) => [it.ownAttr('class'), it.ownAttr('id'), it.ownAttr('title')]),
          theirs.map((it) => [it.attribs['class'], it.attribs['id'], it.attribs['title']]),
          css,
        )
        assert.equal($.exists(css), theirs.length > 0)
      }
      release($)
    }),
    { numRuns: 500 },
  )
})

test('reads the text cheerio reads, without scripts and styles', () => {
  fc.assert(
    fc.property(messyHtml, (html) => {
      fc.pre(!isKnownDifference(html))
      const $ = select(html, 'http://h/')
      const cheerio = reference(html)
      const tags = 'p, div, li, td, span, a, title, textarea, svg, x-card, h1, script, style'
      assert.deepEqual(
        $.all(tags).map((it) => it.text()),
        cheerio(tags)
          .toArray()
          .map((it) => fold(textWithout(it))),
      )
    }),
    { numRuns: 400 },
  )
})

test('looks only inside a place, as cheerio’s find does', () => {
  fc.assert(
    fc.property(messyHtml, selector, (html, css) => {
      fc.pre(!isKnownDifference(html))
      const $ = select(`<main>${html}</main>`, 'http://h/')
      const cheerio = reference(`<main>${html}</main>`)
      const places = 'main div, main ul, main p'
      assert.deepEqual(
        $.all(places).map((place) => place.all(css).map((it) => [it.ownAttr('class'), it.ownAttr('id'), it.text()])),
        cheerio(places)
          .toArray()
          .map((place) => {
            const found = cheerio(place).find(css).toArray()
            return found.map((it) => [it.attribs['class'], it.attribs['id'], fold(textWithout(it))])
          }),
      )
    }),
    { numRuns: 400 },
  )
})

/** Text nodes under a node, without scripts and styles. */
function textWithout(node: object): string {
  if ('data' in node && 'type' in node) return node.type === 'text' ? String(node.data) : ''
  if (!('children' in node)) return ''
  return (node.children as object[])
    .filter((it) => !('name' in it && (it.name === 'script' || it.name === 'style')))
    .map(textWithout)
    .join('')
}
