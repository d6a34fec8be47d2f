import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseDocument } from 'htmlparser2'
import { decodeEntities } from './entities.ts'

const piece = fc.constantFrom(
  '&',
  '&amp',
  '&amp;',
  '&lt',
  'gt;',
  '&copy',
  '&copy;',
  '&notin;',
  '&not',
  'in;',
  '&#',
  '&#x',
  '65',
  '41;',
  ';',
  '=',
  'a',
  'Z',
  ' ',
  '1',
  'é',
  '&nbsp;',
  '&#128;',
  '&#0;',
  '&#xD800;',
  '&#x110000;',
  '&#x1F600;',
  '&apos;',
  '&AMP;',
  '&NotEqualTilde;',
  '&eacute',
  "'",
)

test('decodes entities in text and attributes as htmlparser2 does', () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const source = pieces.join('')
      const [text] = parseDocument(`<p>${source}</p>`).children.flatMap((p) => ('children' in p ? p.children : []))
      assert.equal(decodeEntities(source, 'text'), text !== undefined && 'data' in text ? text.data : '')
      const [element] = parseDocument(`<p a="${source}"></p>`).children
      assert.equal(
        decodeEntities(source, 'attribute'),
        element !== undefined && 'attribs' in element ? element.attribs['a'] : '',
      )
    }),
    { numRuns: 5000 },
  )
})

test('decodes attribute values that contain both quotes', () => {
  assert.equal(decodeEntities(`a"b'c&eacute;`, 'attribute'), `a"b'cé`)
})

test('keeps a < that is text', () => {
  assert.equal(decodeEntities('<b>&eacute;</b> &lt;', 'text'), '<b>é</b> <')
})
