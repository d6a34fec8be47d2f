import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseFragment } from 'parse5'
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

/** The text and the attribute of a paragraph with `source` as both. */
function theirs(source: string): [text: string, attribute: string] {
  const [p] = parseFragment(`<p a="${source}">${source}</p>`).childNodes
  assert.ok(p !== undefined && 'attrs' in p)
  const [text] = p.childNodes
  return [text !== undefined && 'value' in text ? text.value : '', p.attrs[0]!.value]
}

test('decodes entities in text and attributes as parse5 does', () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const source = pieces.join('')
      assert.deepEqual([decodeEntities(source, 'text'), decodeEntities(source, 'attribute')], theirs(source))
    }),
    { numRuns: 5000 },
  )
})

test('decodes every number up to 300 and around the limits as parse5 does', () => {
  const limits = [0xd7ff, 0xd800, 0xdfff, 0xe000, 0xfdd0, 0xfffe, 0xffff, 0x10000, 0x1fffe, 0x10ffff, 0x110000, 2 ** 40]
  for (const code of [...Array(301).keys(), ...limits])
    for (const source of [
      `&#${code};`,
      `&#x${code.toString(16)};`,
      `&#X${code.toString(16).toUpperCase()} `,
      `&#000${code}z`,
    ])
      assert.deepEqual([decodeEntities(source, 'text'), decodeEntities(source, 'attribute')], theirs(source), source)
})

/** All that need no semicolon, and some of two characters or that begin like another. */
const NAMES = (
  'AElig AMP Aacute Acirc Agrave Aring Atilde Auml COPY Ccedil ETH Eacute Ecirc Egrave Euml GT Iacute Icirc Igrave Iuml LT Ntilde ' +
  'Oacute Ocirc Ograve Oslash Otilde Ouml QUOT REG THORN Uacute Ucirc Ugrave Uuml Yacute aacute acirc acute aelig agrave amp aring ' +
  'atilde auml brvbar ccedil cedil cent copy curren deg divide eacute ecirc egrave eth euml frac12 frac14 frac34 gt iacute icirc ' +
  'iexcl igrave iquest iuml laquo lt macr micro middot nbsp not ntilde oacute ocirc ograve ordf ordm oslash otilde ouml para plusmn ' +
  'pound quot raquo reg sect shy sup1 sup2 sup3 szlig thorn times uacute ucirc ugrave uml uuml yacute yen yuml ' +
  'apos euro hellip mdash ndash lsquo rdquo trade bull rarr notin notinva ThickSpace NotEqualTilde fjlig acE lesg gesl Tab NewLine ' +
  'bne race nvlt vnsub zwj lrm Afr afr sub supe ampx bogus toString constructor'
).split(' ')

test('decodes names as parse5 does, with and without its semicolon', () => {
  for (const name of NAMES)
    for (const source of [`&${name};`, `&${name}`, `&${name}=`, `&${name}x;`, `a&${name} `])
      assert.deepEqual([decodeEntities(source, 'text'), decodeEntities(source, 'attribute')], theirs(source), source)
})

test('decodes attribute values that contain both quotes', () => {
  assert.equal(decodeEntities(`a"b'c&eacute;`, 'attribute'), `a"b'cé`)
})

test('keeps a < that is text', () => {
  assert.equal(decodeEntities('<b>&eacute;</b> &lt;', 'text'), '<b>é</b> <')
})
