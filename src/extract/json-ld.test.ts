import assert from 'node:assert/strict'
import { test } from 'node:test'
import { select } from './html.ts'
import { jsonLdNodes } from './json-ld.ts'

const block = (...texts: string[]): string =>
  texts.map((it) => `<script type="application/ld+json">${it}</script>`).join('\n')
const nodes = (html: string, type?: string) => select(html, 'http://h/').jsonLd(type)

test('flattens arrays and graphs', () => {
  const html = block(
    '[{"@type":"A"},[{"@type":"B"}]]',
    '{"@context":"https://schema.org","@graph":[{"@type":"C"},{"@type":"D","x":[{"@type":"E"}]}]}',
    '{"@type":"F","@graph":[{"@type":"G"}]}',
  )
  assert.deepEqual(
    nodes(html).map((node) => node['@type']),
    ['A', 'B', 'C', 'D', 'F', 'G'],
  )
})

test('filters by type, including lists of types and full URLs', () => {
  const html = block(
    '[{"@type":["Thing","Product"],"n":1},{"@type":"https://schema.org/Product","n":2},{"@type":"schema:Product","n":3}]',
    '[{"@type":"ProductGroup"},{"@type":null},{"n":4},5,"Product",null]',
  )
  assert.deepEqual(
    nodes(html, 'Product').map((node) => node['n']),
    [1, 2, 3],
  )
})

test('skips blocks that are beyond repair', () => {
  assert.deepEqual(nodes(block('{"@type":"A"', '', '{"@type":"B"}', 'null', '7')), [{ '@type': 'B' }])
})

test('reads blocks hidden in comments, of any case and with a charset', () => {
  const html = `<SCRIPT TYPE="Application/LD+JSON; charset=utf-8"><!-- {"@type":"A"} --></SCRIPT>${block('//<![CDATA[\n{"@type":"B"}\n//]]>')}`
  assert.equal(nodes(html).length, 2)
})

test('treats __proto__ like any other name', () => {
  const [node] = nodes(
    block('{"@type":"A","__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}'),
  )
  assert.equal(Object.hasOwn(node!, '__proto__'), true)
  assert.equal(Object.getPrototypeOf(node), Object.prototype)
  assert.equal((node as { polluted?: boolean }).polluted, undefined)
  assert.equal(({} as { polluted?: boolean }).polluted, undefined)
  assert.deepEqual(jsonLdNodes('{"__proto__":{"@graph":[{"@type":"X"}]}}').length, 1)
})

test('handles deep nesting and many nodes', () => {
  assert.deepEqual(jsonLdNodes(`${'['.repeat(100_000)}${']'.repeat(100_000)}`), [])
  assert.equal(jsonLdNodes(`[${'{},'.repeat(50_000)}{}]`).length, 10_000)
})
