import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { load } from 'cheerio'
import { release, select } from './html.ts'
import { assertSameTree } from './tree-oracle.test-kit.ts'

const folder = new URL('../../test/pages/', import.meta.url)
const fold = (text: string): string => text.replace(/\s+/g, ' ').trim()

/** One value per page, by selector; `@name` reads an attribute. */
const FIELDS = {
  title: ['title', ''],
  description: ['meta[name="description" i]', 'content'],
  canonical: ['link[rel="canonical"]', 'href'],
  h1: ['h1', ''],
  ogTitle: ['meta[property="og:title"]', 'content'],
} as const

for (const file of readdirSync(folder).filter((name) => name.endsWith('.html'))) {
  test(`builds parse5’s tree of ${file}, and writes the same HTML`, () => {
    assertSameTree(readFileSync(new URL(file, folder), 'utf8'))
  })

  test(`reads ${file} as a browser’s parser does`, () => {
    const html = readFileSync(new URL(file, folder), 'utf8')
    const url = `https://example.org/docs/${file}`
    const $ = select(html, url)
    const parse5 = load(html, { scriptingEnabled: false })
    parse5('template').empty() // cheerio finds what is in a template; a browser does not
    const base = new URL(parse5('base').attr('href') ?? url, url)

    for (const [name, [css, attribute]] of Object.entries(FIELDS)) {
      const element = parse5(css).first()
      if (attribute === '') {
        const theirs = element.length === 0 ? undefined : fold(element.text())
        assert.equal($.text(css, { optional: true }), theirs, name)
      } else {
        const value = element.attr(attribute)
        const theirs = attribute === 'href' && value !== undefined ? new URL(value, base).href : value
        assert.equal($.attr(css, attribute, { optional: true }), theirs, name)
      }
    }
    assert.deepEqual(
      $.all('a').map((a) => [a.ownAttr('href') ?? a.ownAttr('xlink:href'), a.text()]), // parse5 drops SVG's prefix
      parse5('a')
        .toArray()
        .map((a) => [a.attribs['href'], fold(parse5(a).text())]),
      'links',
    )
    assert.deepEqual(
      $.all('td, th').map((cell) => cell.text()),
      parse5('td, th')
        .toArray()
        .map((cell) => fold(parse5(cell).text())),
      'table cells',
    )
    release($)
  })
}
