/** The prescan gives the same answers as html-encoding-sniffer, on generated heads and on real pages. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import sniffEncoding from 'html-encoding-sniffer'
import { encodingName, htmlDeclaration, xmlDeclaration } from './prescan.ts'

const PAGES = join(import.meta.dirname, '../../../test/pages')

const expectedHtml = (body: Buffer, maxPrescanBytes: number) =>
  sniffEncoding(body, { defaultEncoding: '', maxPrescanBytes }).toLowerCase()
const expectedXml = (body: Buffer) => sniffEncoding(body, { xml: true, defaultEncoding: '' }).toLowerCase()
/** Byte order marks are detected before the prescan. */
const hasMark = (body: Buffer) => /^(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)/.test(body.toString('latin1', 0, 3))

const labels = [
  'utf-8',
  'UTF8',
  ' utf-8\n',
  'windows-1251',
  'koi8-r',
  'shift_jis',
  'utf-16',
  'UTF-16BE',
  'x-user-defined',
]
labels.push('iso-2022-kr', 'HZ-GB-2312', 'replacement', 'nonsense', '', ';utf-8', 'x', '\x0butf-8', 'iso-8859-1;q=1')
const label = fc.constantFrom(...labels)
const space = fc.constantFrom('', ' ', '\n', '\t ', '\f', '\r', '/', '\x0b', '\0')
const quote = fc.constantFrom('"', "'", '')
const piece = fc.constantFrom(
  ...[
    '<',
    '>',
    '=',
    '/',
    '"',
    "'",
    '!',
    '-',
    '--',
    '?',
    ' ',
    '\n',
    '\0',
    'a',
    'À',
    '<meta',
    '<metal',
    '<META',
    '</meta',
  ],
  ...[
    'charset',
    'CharSet',
    'charset=',
    'content',
    'http-equiv',
    'content-type',
    '<!--',
    '-->',
    '--!>',
    '<!-->',
    '<?xml',
  ],
  ...['encoding', 'encoding=', '?>', '<b', '<b title=', '</b', '<!doctype html>', 'text/html;', 'utf-8', 'koi8-r', ';'],
)
const contentValue = fc
  .tuple(fc.constantFrom('text/html;', '', 'charset', 'charset ='), space, space, quote, label, quote)
  .map(([start, one, two, open, name, close]) => `${start}${one}charset${two}=${one}${open}${name}${close}`)
const attribute = fc
  .tuple(
    fc.oneof(
      fc.tuple(fc.constantFrom('charset', 'CHARSET', 'xcharset', '=charset'), label),
      fc.tuple(fc.constant('content'), contentValue),
      fc.tuple(
        fc.constantFrom('http-equiv', 'HTTP-EQUIV'),
        fc.constantFrom('Content-Type', 'refresh', 'content-type '),
      ),
      fc.tuple(fc.constantFrom('name', 'title', 'a'), fc.constantFrom('<meta charset=koi8-r>', '>', 'x', '')),
    ),
    space,
    quote,
    space,
  )
  .map(([[name, value], before, mark, after]) => `${name}${before}=${after}${mark}${value}${mark}`)
const element = fc
  .tuple(
    fc.constantFrom('<meta', '<META', '<Meta', '<b', '<link', '<metal', '</p'),
    fc.array(attribute, { maxLength: 4 }),
  )
  .chain(([start, attributes]) =>
    fc.tuple(space, fc.constantFrom('>', '/>', ' >', '')).map(([between, end]) => {
      return `${start}${between}${attributes.join(' ')}${end}`
    }),
  )
const xmlStart = fc
  .tuple(
    fc.constantFrom('<?xml', '<?XML', ' <?xml'),
    space,
    fc.constantFrom('encoding', 'Encoding'),
    space,
    quote,
    label,
    quote,
  )
  .map(
    ([start, one, name, two, open, text, close]) =>
      `${start} version="1.0"${one}${name}${two}=${two}${open}${text}${close}?>`,
  )
const utf16 = fc.constantFrom('<\0?\0x\0m\0', '\0<\0?\0x\0m', '<\0?\0', '\0<')
const head = fc
  .array(fc.oneof(piece, piece, element, element, xmlStart, utf16), { maxLength: 12 })
  .map((pieces) => Buffer.from(pieces.join(''), 'latin1'))

describe('the prescan', () => {
  it('answers as html-encoding-sniffer does on any head of a page', () => {
    fc.assert(
      fc.property(head, fc.integer({ min: 0, max: 300 }), (body, bytesMax) => {
        fc.pre(!hasMark(body))
        assert.equal(htmlDeclaration(body, bytesMax), expectedHtml(body, bytesMax))
        assert.equal(htmlDeclaration(body, 1024), expectedHtml(body, 1024))
      }),
      { numRuns: 5000 },
    )
  })

  it('answers as html-encoding-sniffer does on any head of a feed', () => {
    const feed = fc
      .tuple(fc.oneof(xmlStart, utf16), head)
      .map(([start, rest]) => Buffer.concat([Buffer.from(start, 'latin1'), rest]))
    fc.assert(
      fc.property(fc.oneof(head, feed), (body) => {
        fc.pre(!hasMark(body))
        assert.equal(xmlDeclaration(body), expectedXml(body))
      }),
      { numRuns: 2000 },
    )
  })

  it('answers as html-encoding-sniffer does on real pages, truncated anywhere', () => {
    for (const name of readdirSync(PAGES)) {
      const page = readFileSync(join(PAGES, name))
      if (hasMark(page)) continue
      for (const bytesMax of [1024, 65_536])
        assert.equal(htmlDeclaration(page, bytesMax), expectedHtml(page, bytesMax), name)
      for (let bytes = 0; bytes < 1024; bytes += 7)
        assert.equal(htmlDeclaration(page, bytes), expectedHtml(page, bytes), `${name} cut at ${bytes}`)
    }
  })

  it('knows the names of labels in any case, and those that are refused', () => {
    assert.equal(encodingName(' Latin1\n'), 'windows-1252')
    assert.equal(encodingName('ISO-2022-CN-EXT'), 'replacement')
    assert.equal(encodingName('x'.repeat(100_000)), '')
    assert.equal(encodingName(''), '')
  })
})
