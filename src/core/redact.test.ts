import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cpuMs } from '../../test/cpu-time.ts'
import { HARMLESS_TEXTS, HARMLESS_VALUES, SECRET_TEXTS, SECRET_VALUES } from '../../test/secret-forms.ts'
import { redactAll, redactValue, verbatim } from './redact.ts'
import { redactText } from './redact-text.ts'

test('masks credentials in URLs', () => {
  assert.equal(redactText('via http://ana:hunter2@proxy.test:8080 now'), 'via http://***@proxy.test:8080 now')
  assert.equal(redactText('postgres://sluice:p%40ss@db/x and socks5://u:p@h'), 'postgres://***@db/x and socks5://***@h')
  assert.equal(redactText('https://x.test/@ana/posts'), 'https://x.test/@ana/posts')
})

test('masks the values of secret parameters in URLs, and only those', () => {
  assert.equal(
    redactText('https://x.test/a?page=2&api_key=K1&access_token=T1&X-Amz-Signature=S1&q=token#f'),
    'https://x.test/a?page=2&api_key=***&access_token=***&X-Amz-Signature=***&q=token#f',
  )
  assert.equal(redactText('https://x.test/?key=a&keyword=b&monkey=c'), 'https://x.test/?key=***&keyword=b&monkey=c')
})

test('masks a short code in a URL that also has the state of a login, before or after it', () => {
  assert.equal(
    redactText('GET https://x.test/cb?code=4f9a&state=s1 now'),
    'GET https://x.test/cb?code=***&state=s1 now',
  )
  assert.equal(redactText('https://x.test/cb?state=s1&code=4f9a'), 'https://x.test/cb?state=s1&code=***')
  const texts = 'https://x.test/cb?code=4f9a&state=s1 https://x.test/p?code=de-DE'
  assert.equal(redactText(texts), 'https://x.test/cb?code=***&state=s1 https://x.test/p?code=de-DE')
})

test('masks a key that only begins like the one in our help', () => {
  assert.equal(redactText('Authorization: Bearer KEY42'), 'Authorization: ***')
  assert.equal(redactText('postgres://user:password@localhost:1@db/x'), 'postgres://***@db/x')
})

test('masks headers and named values in messages', () => {
  assert.equal(redactText('sent Authorization: Basic YW5hOmh1bnRlcjI='), 'sent Authorization: ***')
  assert.equal(redactText('Cookie: sid=1; theme=dark'), 'Cookie: ***')
  assert.equal(redactText('{"password":"hunter2","a":1}'), '{"password":"***","a":1}')
  assert.equal(redactText('got Bearer abcdef0123456789'), 'got Bearer ***')
})

const SECRET = 'Zx9CanarySecret42'

test('masks a secret in every format in which it appears in a text', () => {
  assert.ok(SECRET_TEXTS.length >= 90)
  const passed = SECRET_TEXTS.flatMap(([what, write]) => {
    const text = write(SECRET)
    const shown = redactText(text)
    const isMasked = shown !== text && !shown.includes(SECRET) && !decodable(shown).includes(SECRET)
    return isMasked ? [] : [`${what}: ${shown}`]
  })
  assert.deepEqual(passed, [])
})

/** Base64 of a secret is the secret. */
const decodable = (text: string) => Buffer.from(text.split(/\s/).at(-1)!, 'base64').toString()

test('leaves masked text unchanged when it is masked again', () => {
  for (const [what, write] of SECRET_TEXTS) {
    const shown = redactText(write(SECRET))
    assert.equal(redactText(shown), shown, what)
  }
})

test('masks a secret in every kind of value', () => {
  const passed = SECRET_VALUES.flatMap(([what, make]) => {
    const shown = [redactValue(make(SECRET)), redactAll(make(SECRET))].map((value) => JSON.stringify(value))
    return shown.some((text) => /Zx9Canary|918273/.test(text)) ? [`${what}: ${shown[0]}`] : []
  })
  assert.deepEqual(passed, [])
})

test('leaves harmless texts and values unchanged', () => {
  assert.ok(HARMLESS_TEXTS.length >= 40)
  assert.deepEqual(HARMLESS_TEXTS.map(redactText), HARMLESS_TEXTS)
  assert.deepEqual(redactAll(HARMLESS_VALUES), HARMLESS_VALUES)
})

test('shows parts marked as data unchanged, and masks the rest of the value', () => {
  const items = verbatim([{ key: 'a', token: 'kept' }])
  assert.deepEqual(redactAll({ items, token: 'gone' }), { items: [{ key: 'a', token: 'kept' }], token: '***' })
})

test('masks secrets in nested values and limits their size', () => {
  const loop: Record<string, unknown> = { name: 'x' }
  loop['self'] = loop
  assert.deepEqual(
    redactValue({
      headers: { Authorization: 'Basic x', 'set-cookie': ['a=b'], accept: '*/*' },
      proxy: { url: 'http://u:p@h', proxyPassword: 'p' },
      list: [{ apiKey: 'k' }],
      body: Buffer.alloc(10),
      big: 1n,
      error: Object.assign(new Error('at http://u:p@h'), { code: 'ECONNREFUSED' }),
    }),
    {
      headers: { Authorization: '***', 'set-cookie': '***', accept: '*/*' },
      proxy: { url: 'http://***@h', proxyPassword: '***' },
      list: [{ apiKey: '***' }],
      body: '[10 bytes]',
      big: '1',
      error: { name: 'Error', message: 'at http://***@h', code: 'ECONNREFUSED' },
    },
  )
  assert.ok(JSON.stringify(redactValue(loop)).length < 500)
})

test('takes time linear in the length of the text', () => {
  const bits = [
    ...[
      'a.',
      '?',
      '&a',
      'token ',
      'token',
      'http://',
      '@',
      'u:p@',
      '"',
      '\\"',
      '\\',
      '%41',
      '%25',
      'name="a" ',
      '<password>',
    ],
    ...[
      'password=',
      'password="',
      '-----BEGIN PRIVATE KEY-----',
      'eyJaaaaaaaaa.',
      'bearer ',
      'a.b:1:c:d',
      '=,',
      ':',
      '--a ',
    ],
    ...['["a","', '&quot;', 'aA', 'x-y_', 'a-', 'authorization:', 'cookie:="', 'name=a'],
    ...SECRET_TEXTS.map(([, write]) => write(SECRET)),
  ]
  const timeOf = (text: string) => cpuMs(() => redactText(text))
  // Ten times the length in a hundred times the time would be quadratic. The slack is for a noisy measurement: a quadratic step
  // takes tens of seconds for the longer text.
  for (const bit of bits) {
    const [short, long] = [10_000, 100_000].map((length) => timeOf(bit.repeat(length / bit.length)))
    assert.ok(long! < 40 * short! + 2_000, `${JSON.stringify(bit)}: ${short} ms, then ${long} ms`)
  }
})
