import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import zlib from 'node:zlib'
import fc from 'fast-check'
import { decodeBody, parseContentEncoding } from './decode.ts'

const MIB = 1_048_576
const ENCODERS: Record<string, (data: Uint8Array) => Buffer> = {
  gzip: zlib.gzipSync,
  deflate: zlib.deflateSync,
  br: (data) => zlib.brotliCompressSync(data, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 } }),
  zstd: (data) => zlib.zstdCompressSync(data, { params: { [zlib.constants.ZSTD_c_checksumFlag]: 1 } }),
}
const codings = fc.array(fc.constantFrom(...Object.keys(ENCODERS)), { minLength: 1, maxLength: 3 })
function encode(data: Uint8Array, names: readonly string[]): Buffer {
  let body = Buffer.from(data)
  for (const name of names) body = Buffer.from(ENCODERS[name]!(body))
  return body
}

describe('decodeBody', () => {
  it('returns what was encoded, in any chain', async () => {
    const property = fc.asyncProperty(fc.uint8Array({ maxLength: 5000 }), codings, async (data, names) => {
      assert.deepEqual(await decodeBody(encode(data, names), names, MIB), Buffer.from(data))
    })
    await fc.assert(property, { numRuns: 50 })
  })

  for (const name of Object.keys(ENCODERS)) {
    it(`refuses ${name} truncated at any position`, () => {
      const whole = encode(Buffer.from('some text, '.repeat(20)), [name])
      for (let length = 0; length < whole.length; length++) {
        assert.throws(() => decodeBody(whole.subarray(0, length), [name], MIB), { code: 'E_ENCODING' }, `at ${length}`)
      }
    })
  }

  it('refuses gzip and zstd with any byte of their data or checksum changed, or decodes to the same', () => {
    const text = 'some text, '.repeat(20)
    for (const name of ['gzip', 'zstd']) {
      const whole = encode(Buffer.from(text), [name])
      for (let at = 0; at < whole.length; at++) {
        const damaged = Buffer.from(whole)
        damaged[at]! ^= 0x41
        let decoded: unknown
        try {
          decoded = decodeBody(damaged, [name], MIB)
        } catch (error) {
          assert.ok(['E_ENCODING', 'E_TOO_LARGE'].includes((error as { code: string }).code))
          continue
        }
        assert.equal(String(decoded), text, `${name} byte ${at}`) // a timestamp or the like
      }
    }
  })

  it('stops exactly at the limit, on the event loop and off it', async () => {
    for (const bytes of [1000, 3_000_000]) {
      const body = encode(Buffer.alloc(bytes, 'x'), ['gzip'])
      assert.equal((await decodeBody(body, ['gzip'], bytes)).length, bytes)
      await assert.rejects(async () => decodeBody(body, ['gzip'], bytes - 1), { code: 'E_TOO_LARGE' })
    }
  })

  it('refuses a flood of zstd frames', () => {
    const frame = encode(Buffer.from('x'), ['zstd'])
    const flood = Buffer.concat(Array(1000).fill(frame))
    assert.throws(() => decodeBody(flood, ['zstd'], MIB), { code: 'E_ENCODING' })
  })
})

describe('parseContentEncoding', () => {
  it('reads lists, any case and old names', () => {
    assert.deepEqual(parseContentEncoding('GZIP, br'), ['gzip', 'br'])
    assert.deepEqual(parseContentEncoding('x-gzip'), ['gzip'])
    assert.deepEqual(parseContentEncoding('identity'), [])
    assert.deepEqual(parseContentEncoding(''), [])
  })

  it('refuses unknown encodings and too many of them', () => {
    for (const header of ['compress', 'gzip;q=1', 'aes128gcm', 'gzip,gzip,gzip,gzip']) {
      assert.throws(() => parseContentEncoding(header), { code: 'E_ENCODING' }, header)
    }
  })
})
