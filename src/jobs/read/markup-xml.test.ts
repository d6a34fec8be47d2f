/** Feeds: valid, broken and hostile. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readXml } from './markup-xml.ts'

const read = (text: string, root = 'rss') => readXml(text, { root, url: 'https://b.test/feed' })

test('reads text, CDATA, entities and prefixed names', () => {
  const feed =
    read(`<?xml version="1.0"?><!-- a --><rss xmlns:tt="x"><channel><item><link>https://a.test/?a=1&amp;b=2&c=3</link>
    <tt:locations><tt:location><tt:city>K&#246;ln</tt:city></tt:location><tt:location><tt:city/></tt:location></tt:locations>
    <description><![CDATA[<p>A &amp; <b>B</b></p>]]></description></item></channel></rss>`)
  const [item] = feed.all('channel', 'item')
  assert.equal(item!.textOf('link'), 'https://a.test/?a=1&b=2&c=3')
  assert.equal(item!.textOf('description'), '<p>A &amp; <b>B</b></p>')
  assert.deepEqual(
    item!.all('locations', 'location').map((place) => place.textOf('city')),
    ['Köln', undefined],
  )
  assert.equal(item!.textOf('nothing', 'here'), undefined)
})

test('an empty feed is a feed', () => assert.deepEqual(read('<rss/>').all('channel', 'item'), []))

for (const [what, text, said] of [
  ['a feed that is cut off', '<rss><channel><item><title>Cook</title>', /cut off/],
  ['a web page', '<!doctype html><html><body>Not here</body></html>', /<rss> expected, found <html>/],
  ['nothing', '', /no element/],
  ['JSON', '{"jobs":[]}', /no element/],
  ['a ladder of tags', '<rss>'.repeat(1_000_000), /nested more than 64/],
] as const) {
  test(`${what} is an error`, () => assert.throws(() => read(text), { code: 'E_SELECTOR_EMPTY', message: said }))
}

test('entities a document declares are not expanded', () => {
  const bomb = `<!DOCTYPE rss [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><rss><title>&b;</title></rss>`
  assert.equal(read(bomb).textOf('title'), '&b;')
})
