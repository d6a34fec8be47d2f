import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { taskId } from '../core/url.ts'
import { nameInDisposition } from './content-disposition.ts'
import { fileKey, mustBePlain, nameOfUrl, safeName } from './naming.ts'
import { extensionFor, typeOf } from './types.ts'

/** Any name that a server may give a file. */
const anyName = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 400 }),
  fc.string({ unit: 'grapheme', maxLength: 100 }),
  fc.array(fc.constantFrom('..', '/', '\\', '\0', 'a', '.', '%2e', 'CON', ' ', '\u202e', 'e\u0301', '😀', '-', '~', ':', '\n'), {
    maxLength: 60,
  }).map((parts) => parts.join('')), // biome-ignore format: one line reads better
)
const anyType = fc.constantFrom('application/pdf', 'text/plain', 'image/jpeg', 'application/octet-stream', 'x/unknown')
const parts = fc.record({
  scraper: anyName,
  runId: anyName,
  user: anyName,
  taskId: anyName.map((key) => taskId({ url: '', key: key.toWellFormed() })),
  name: anyName,
  contentType: anyType,
})

const SEGMENT = /^[\p{L}\p{M}\p{N}_-][\p{L}\p{M}\p{N}._-]*$/u

describe('the key of a stored file', () => {
  it('is four plain segments, whatever it is made from', () => {
    fc.assert(
      fc.property(parts, (given) => {
        const key = fileKey(given)
        const segments = key.split('/')
        assert.equal(segments.length, 4)
        for (const segment of segments) {
          assert.match(segment, SEGMENT)
          assert.ok(Buffer.byteLength(segment) <= 120, `${Buffer.byteLength(segment)} bytes`)
          assert.doesNotMatch(segment, /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i)
          assert.doesNotMatch(segment, /\.$|\.\./)
          assert.equal(segment, segment.normalize('NFC'))
          assert.ok(segment.isWellFormed())
        }
        mustBePlain(key)
      }),
      { numRuns: 600 },
    )
  })

  it('differs for another task, scraper, run or user', () => {
    fc.assert(
      fc.property(parts, parts, (one, other) => {
        const isSame = (['scraper', 'runId', 'user', 'taskId'] as const).every((name) => one[name].toWellFormed() === other[name].toWellFormed()) // biome-ignore format: one line reads better
        if (!isSame) assert.notEqual(fileKey(one).toLowerCase(), fileKey(other).toLowerCase())
        assert.equal(fileKey(one), fileKey({ ...one }))
      }),
    )
  })

  it('distinguishes users that look alike once cleaned', () => {
    const keys = ['a/b', 'a-b', 'a\\b', '_', '', '../a', 'a', 'CON'].map((user) =>
      fileKey({ scraper: 's', runId: 'r', user, taskId: 'f'.repeat(64), name: 'x', contentType: 'text/plain' }),
    )
    assert.equal(new Set(keys).size, keys.length)
  })

  for (const [name, type, expected] of [
    ['../../etc/passwd', 'text/plain', 'passwd.txt'],
    ['C:\\Windows\\evil.exe', 'application/pdf', 'evil.pdf'],
    ['report.pdf', 'application/pdf', 'report.pdf'],
    ['photo.jpeg', 'image/jpeg', 'photo.jpeg'],
    ['photo.png', 'image/jpeg', 'photo.jpg'],
    ['table.xlsx', 'application/zip', 'table.xlsx'],
    ['v1.2', 'application/gzip', 'v1.2.gz'],
    ['data.csv', 'text/plain', 'data.csv'],
    ['page.pdf', 'text/html', 'page.html'],
    ['x.pdf', 'application/octet-stream', 'x.bin'],
    ['.htaccess', 'text/plain', 'htaccess.txt'],
    ['...', 'text/plain', 'file.txt'],
    ['', 'image/png', 'file.png'],
    ['\u202Egpj.exe', 'image/jpeg', 'gpj.jpg'],
    ['na\u0131ve e\u0301te\u0301.pdf', 'application/pdf', 'naıve-été.pdf'],
    ['nul\0byte.txt', 'text/plain', 'nul-byte.txt'],
  ] as const)
    it(`calls ${JSON.stringify(name)} of type ${type} ${expected}`, () => assert.equal(safeName(name, type), expected))
})

describe('the name in a Content-Disposition', () => {
  for (const [header, name] of [
    ['attachment; filename="a.pdf"', 'a.pdf'],
    ['attachment; filename=a.pdf', 'a.pdf'],
    ['attachment;filename=a b.pdf;x=y', 'a b.pdf'],
    [`attachment; filename="x.pdf"; filename*=UTF-8''%e2%82%ac%20rates.pdf`, '€ rates.pdf'],
    [`attachment; filename*=UTF-8''%e2%82%ac.pdf; filename="x.pdf"`, '€.pdf'],
    [`attachment; filename*=iso-8859-1'en'%A3.pdf`, '£.pdf'],
    [`attachment; filename*=UTF-8''%ff%fe; filename="fallback.pdf"`, 'fallback.pdf'],
    [`attachment; filename*=koi8-r''%c1; filename=b.pdf`, 'b.pdf'],
    ['attachment; filename="a \\"quoted\\" name.pdf"', 'a "quoted" name.pdf'],
    ['attachment; filename="semi;colon.pdf"', 'semi;colon.pdf'],
    [`attachment; filename="${Buffer.from('naïve.pdf').toString('latin1')}"`, 'naïve.pdf'],
    ['attachment; filename="per%20cent.pdf"', 'per cent.pdf'],
    ['INLINE; FILENAME=Up.pdf', 'Up.pdf'],
    ['attachment', undefined],
    ['attachment; filename=', undefined],
    ['attachment; filename=""', undefined],
    ['filename=a.pdf', undefined],
    ['', undefined],
  ] as const)
    it(`reads ${JSON.stringify(header)}`, () => assert.equal(nameInDisposition(header), name))

  it('never throws, and is fast with hostile headers', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (header) => void nameInDisposition(header)))
    for (const unit of ['; filename=', '"\\', "; filename*=UTF-8''%", ';', '; a="', '%41'])
      nameInDisposition(`attachment; filename="${unit.repeat(100_000)}`)
  })

  it('reads names out of URLs', () => {
    assert.equal(nameOfUrl('http://h/a/b%20c.pdf?x=1'), 'b c.pdf')
    assert.equal(nameOfUrl('http://h/a/..%2f..%2fetc%2fpasswd'), 'passwd')
    assert.equal(nameOfUrl('http://h/%zz'), '%zz')
    assert.equal(nameOfUrl('http://h/'), '')
  })
})

describe('the type of a file', () => {
  const text = (value: string) => Buffer.from(value)
  it('is what its bytes say, else what the server says', async () => {
    assert.equal(await typeOf(text('%PDF-1.7\n'), 'image/jpeg'), 'application/pdf')
    assert.equal(await typeOf(text('a,b\n1,2\n'), 'text/csv; charset=utf-8'), 'text/csv')
    assert.equal(await typeOf(text('<!doctype html><p>Not found'), 'application/pdf'), 'text/html')
    assert.equal(await typeOf(text('some words'), 'application/pdf'), 'application/octet-stream')
    assert.equal(await typeOf(text('some words'), undefined), 'application/octet-stream')
    assert.equal(await typeOf(text(''), '<script>'), 'application/octet-stream')
  })
  it('never throws, whatever the bytes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => void (await typeOf(bytes, 'x/y'))),
    )
    assert.equal(extensionFor('constructor', ''), '')
  })
})
