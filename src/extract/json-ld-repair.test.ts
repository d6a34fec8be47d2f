/** Blocks as templates and editors leave them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseLooseJson } from './json-ld-repair.ts'

const READABLE: [what: string, block: string, meant: unknown][] = [
  ['as it should be', ' {"a":"b"} ', { a: 'b' }],
  ['in a comment', '<!-- {"a":1} -->', { a: 1 }],
  ['in a CDATA section', '<![CDATA[{"a":1}]]>', { a: 1 }],
  ['in a CDATA section in line comments', '//<![CDATA[\n{"a":1}\n//]]>', { a: 1 }],
  ['in a CDATA section in block comments', '/*<![CDATA[*/ {"a":1} /*]]>*/', { a: 1 }],
  ['with a semicolon behind it', '{"a":1};', { a: 1 }],
  ['escaped as a whole', '{&quot;a&quot;:&quot;b &amp;amp; c&quot;}', { a: 'b &amp; c' }],
  ['with raw line breaks and tabs in strings', '{"a":"one\ntwo\r\n\tthree"}', { a: 'one\ntwo\r\n\tthree' }],
  ['with escapes nobody knows', '{"a":"\\$5 \\u00e9 \\uXY \\\\ \\" \\d"}', { a: '$5 é uXY \\ " d' }],
  ['with commas at the end', '{"a":[1,2 , ],"b":{"c":",]",},\n}', { a: [1, 2], b: { c: ',]' } }],
  ['with everything at once', '<!--{&quot;a&quot;:&quot;x\ny \\$&quot;,}-->', { a: 'x\ny $' }],
]

for (const [what, block, meant] of READABLE) {
  test(`reads a block ${what}`, () => assert.deepEqual(parseLooseJson(block), meant))
}

test('leaves entities alone in a block that parses', () => {
  assert.deepEqual(parseLooseJson('{"a":"<p>&quot;x&quot; &amp;#xa;</p>"}'), { a: '<p>&quot;x&quot; &amp;#xa;</p>' })
})

test('returns nothing for text that is not JSON at all, however long', () => {
  for (const block of ['', 'hello', '{"a":"b', '{"a":', '<!-- -->', '{"a":'.repeat(100_000), ', '.repeat(500_000)])
    assert.equal(parseLooseJson(block), undefined)
})
