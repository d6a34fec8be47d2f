import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { ErrorCode } from './error-table.ts'
import { ScrapeError } from './errors.ts'
import { hostOf, normaliseUrl, taskId, URL_BYTES_MAX } from './url.ts'

const isCode = (code: ErrorCode) => (error: unknown) => error instanceof ScrapeError && error.code === code

/** title → what is given and its normalised form. */
const spellings: Record<string, [given: string, expected: string][]> = {
  'leaves a URL that is already in its one spelling as it is': [
    ['https://a.test/', 'https://a.test/'],
    ['https://a.test/x/y.html?a=1&b=2', 'https://a.test/x/y.html?a=1&b=2'],
    ['http://a.test:8080/x', 'http://a.test:8080/x'],
  ],
  'drops the fragment, also an empty one': [
    ['https://a.test/x#part', 'https://a.test/x'],
    ['https://a.test/x#', 'https://a.test/x'],
    ['https://a.test/x?q=1#part', 'https://a.test/x?q=1'],
    ['https://a.test/x#a?b=1', 'https://a.test/x'],
  ],
  'keeps an encoded # in the path, which is no fragment': [['https://a.test/c%23', 'https://a.test/c%23']],
  'drops credentials': [
    ['https://me:secret@a.test/x', 'https://a.test/x'],
    ['https://me@a.test/x', 'https://a.test/x'],
    ['https://:secret@a.test/x', 'https://a.test/x'],
  ],
  'drops an empty query': [
    ['https://a.test/x?', 'https://a.test/x'],
    ['https://a.test/x?#y', 'https://a.test/x'],
  ],
  'drops tracking parameters in any case, and the ? when nothing is left': [
    ['https://a.test/x?utm_source=n&utm_campaign=c', 'https://a.test/x'],
    ['https://a.test/x?a=1&UTM_Source=n&fbclid=2', 'https://a.test/x?a=1'],
    ['https://a.test/x?gclid=1&id=7', 'https://a.test/x?id=7'],
    ['https://a.test/x?id=7&gclid=1&gclid=2', 'https://a.test/x?id=7'],
  ],
  'keeps parameters that only look like tracking': [
    ['https://a.test/x?my_utm_source=n', 'https://a.test/x?my_utm_source=n'],
    ['https://a.test/x?gclids=1', 'https://a.test/x?gclids=1'],
    ['https://a.test/x?q=utm_source', 'https://a.test/x?q=utm_source'],
  ],
  'sorts parameters by name and keeps the order of equal names': [
    ['https://a.test/x?b=2&a=1', 'https://a.test/x?a=1&b=2'],
    ['https://a.test/x?b=2&a=9&b=1&a=3', 'https://a.test/x?a=9&a=3&b=2&b=1'],
  ],
  'does not touch the encoding of a query that is already sorted': [
    ['https://a.test/x?a=%20b&c=d+e', 'https://a.test/x?a=%20b&c=d+e'],
    ['https://a.test/x?a&b', 'https://a.test/x?a&b'],
    ['https://a.test/x?a=%7e(x)&b=*', 'https://a.test/x?a=%7e(x)&b=*'],
    ['https://a.test/x?token=ab==', 'https://a.test/x?token=ab=='],
    ['https://a.test/x?%FF=1', 'https://a.test/x?%FF=1'],
  ],
  'drops the trailing dots of a host': [
    ['https://a.test./x', 'https://a.test/x'],
    ['https://a.test.:8443/x', 'https://a.test:8443/x'],
    ['https://a.test../x', 'https://a.test/x'],
  ],
  'writes host names in lower case and in punycode': [
    ['https://BÜCHER.Example/Ä', 'https://xn--bcher-kva.example/%C3%84'],
    ['https://xn--bcher-kva.example/%C3%84', 'https://xn--bcher-kva.example/%C3%84'],
    ['HTTPS://A.TEST/Path', 'https://a.test/Path'],
  ],
  'drops the default port only': [
    ['http://a.test:80/', 'http://a.test/'],
    ['https://a.test:443/', 'https://a.test/'],
    ['https://a.test:80/', 'https://a.test:80/'],
  ],
  'resolves dot segments and spaces around it': [['  https://a.test/a/../b/./c\n', 'https://a.test/b/c']],
  'writes an address in one way': [
    ['http://0x7f.1/', 'http://127.0.0.1/'],
    ['http://[0:0:0:0:0:0:0:1]:81/', 'http://[::1]:81/'],
  ],
}

describe('normaliseUrl', () => {
  for (const [title, pairs] of Object.entries(spellings)) {
    it(title, () => {
      assert.deepEqual(
        pairs.map(([given]) => normaliseUrl(given)),
        pairs.map(([, expected]) => expected),
      )
    })
  }

  it('resolves a relative URL against its base', () => {
    assert.equal(normaliseUrl('../x?b=1&a=2#f', 'https://a.test/p/q/r'), 'https://a.test/p/x?a=2&b=1')
    assert.equal(normaliseUrl('//b.test', new URL('https://a.test/p')), 'https://b.test/')
    assert.equal(normaliseUrl('https://b.test/', 'https://a.test/p'), 'https://b.test/')
  })

  it('accepts a URL object and leaves it unchanged', () => {
    const url = new URL('https://me:secret@a.test/?b=1&a=2#f')
    assert.equal(normaliseUrl(url), 'https://a.test/?a=2&b=1')
    assert.equal(url.href, 'https://me:secret@a.test/?b=1&a=2#f')
  })

  it('rejects an invalid URL', () => {
    for (const text of ['', 'a.test/x', '/x', 'https://', 'http://a b/', 'http://a.test:99999/', 'http://%00/'])
      assert.throws(() => normaliseUrl(text), isCode('E_URL_INVALID'), text)
    assert.throws(() => normaliseUrl('x', 'not a base'), isCode('E_URL_INVALID'))
  })

  it('rejects every scheme but http and https', () => {
    for (const text of ['ftp://a.test/', 'javascript:alert(1)', 'mailto:a@b.test', 'data:,x', 'file:///etc/passwd'])
      assert.throws(() => normaliseUrl(text, 'https://a.test/'), isCode('E_URL_SCHEME'), text)
  })

  it('accepts a URL as long as the limit and rejects a longer one, without repeating it whole', () => {
    const longest = `https://a.test/${'x'.repeat(URL_BYTES_MAX - 'https://a.test/'.length)}`
    assert.equal(normaliseUrl(longest), longest)
    assert.throws(
      () => normaliseUrl(`${longest}x`),
      (error: ScrapeError) => {
        assert.equal(error.code, 'E_URL_INVALID')
        assert.ok(error.details.url!.length < 300 && error.message.length < 300)
        return true
      },
    )
  })

  it('never names a whole data URL in its message', () => {
    const message = (text: string) => {
      try {
        return normaliseUrl(text)
      } catch (error) {
        return (error as Error).message
      }
    }
    assert.ok(message(`data:text/plain,${'x'.repeat(5000)}`).length < 300)
    assert.ok(message(`no url ${'x'.repeat(5000)}`).length < 300)
  })

  it('leaves its own result unchanged, whatever the URL', () => {
    const word = fc.stringMatching(/^[a-z0-9~!*()'. +%é-]{0,6}$/u).filter((text) => !text.includes('%'))
    const escaped = fc.constantFrom('%20', '%2B', '%c3%a9', '%7E', '%', '%zz', '%FF', '+', '=', '&', '[]')
    const part = fc.array(fc.oneof(word, escaped), { maxLength: 3 }).map((parts) => parts.join(''))
    const pair = fc.oneof(
      fc.tuple(part, part).map(([name, value]) => `${name}=${value}`),
      part,
      fc.constantFrom('utm_source=x', 'gclid=1', 'UTM_medium'),
    )
    const url = fc
      .record({
        scheme: fc.constantFrom('http', 'https', 'HTTP'),
        user: fc.constantFrom('', 'u@', 'u:p@', ':p@'),
        host: fc.constantFrom('a.test', 'A.Test.', 'bücher.example', '127.1', '[::1]', 'a.test..', '.'),
        port: fc.constantFrom('', ':80', ':8080'),
        path: fc.array(part, { maxLength: 3 }),
        query: fc.option(fc.array(pair, { maxLength: 5 })),
        hash: fc.option(part),
      })
      .map(({ scheme, user, host, port, path, query, hash }) =>
        [
          `${scheme}://${user}${host}${port}/${path.join('/')}`,
          query === null ? '' : `?${query.join('&')}`,
          hash === null ? '' : `#${hash}`,
        ].join(''),
      )
    fc.assert(
      fc.property(url, (text) => {
        const once = normaliseUrl(text)
        assert.equal(normaliseUrl(once), once)
        assert.equal(new URL(once).href, once)
        assert.doesNotMatch(once, /#|utm_|gclid|@/i)
      }),
      { numRuns: 500 },
    )
  })

  it('normalises a query in any order to the same URL', () => {
    const names = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,3}$/), { minLength: 1, maxLength: 6 })
    const shuffled = names.chain((list) =>
      fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length, maxLength: list.length })),
    )
    fc.assert(
      fc.property(shuffled, ([one, other]) => {
        const url = (list: string[]) => `https://a.test/?${list.map((name) => `${name}=1`).join('&')}`
        assert.equal(normaliseUrl(url(one)), normaliseUrl(url(other)))
      }),
    )
  })
})

describe('hostOf', () => {
  it('is the host with its port, as URL sees it', () => {
    for (const url of [
      'https://a.test/',
      'http://a.test:8080/x//y?u=http://b.test/',
      'http://[::1]:81/',
      'https://xn--bcher-kva.example/',
    ])
      assert.equal(hostOf(url), new URL(url).host)
  })

  it('accepts an origin without a path', () => {
    assert.equal(hostOf('https://a.test:8443'), 'a.test:8443')
  })
})

describe('taskId', () => {
  const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

  it('is the SHA-256 of the URL, in lower-case hex', () => {
    assert.equal(taskId({ url: 'https://a.test/é' }), sha256('https://a.test/é'))
    assert.match(taskId({ url: 'https://a.test/' }), /^[0-9a-f]{64}$/)
  })

  it('is the SHA-256 of the key if there is one, even an empty one', () => {
    assert.equal(taskId({ url: 'https://a.test/search', key: 'page 2' }), sha256('page 2'))
    assert.equal(taskId({ url: 'https://a.test/search', key: '' }), sha256(''))
  })
})
