import assert from 'node:assert/strict'
import { test } from 'node:test'
import { redactText, redactValue } from './redact.ts'

test('takes credentials out of URLs', () => {
  assert.equal(redactText('via http://ana:hunter2@proxy.test:8080 now'), 'via http://***@proxy.test:8080 now')
  assert.equal(redactText('postgres://sluice:p%40ss@db/x and socks5://u:p@h'), 'postgres://***@db/x and socks5://***@h')
  assert.equal(redactText('https://x.test/@ana/posts'), 'https://x.test/@ana/posts')
})

test('takes the values of secret-like parameters out of URLs, and only those', () => {
  assert.equal(
    redactText('https://x.test/a?page=2&api_key=K1&access_token=T1&X-Amz-Signature=S1&q=token#f'),
    'https://x.test/a?page=2&api_key=***&access_token=***&X-Amz-Signature=***&q=token#f',
  )
  assert.equal(redactText('https://x.test/?key=a&keyword=b&monkey=c'), 'https://x.test/?key=***&keyword=b&monkey=c')
})

test('takes headers and named values out of messages', () => {
  assert.equal(redactText('sent Authorization: Basic YW5hOmh1bnRlcjI='), 'sent Authorization: ***')
  assert.equal(redactText('Cookie: sid=1; theme=dark'), 'Cookie: ***')
  assert.equal(redactText('{"password":"hunter2","a":1}'), '{"password":"***","a":1}')
  assert.equal(redactText('got Bearer abcdef0123456789'), 'got Bearer ***')
})

test('leaves innocent texts as they are', () => {
  for (const text of [
    'Unexpected token < in JSON',
    'a proxy is socks5://[USER:PASSWORD@]HOST:PORT or http://…',
    'no route matches https://x.test/a?b=1',
    'a keyboard costs £5',
    '',
  ]) {
    assert.equal(redactText(text), text)
  }
})

test('takes secrets out of nested values and bounds them', () => {
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

test('takes no longer on a text made to slow it down', () => {
  const startMs = performance.now()
  for (const hostile of [
    'a.'.repeat(50_000),
    '?'.repeat(100_000),
    `${'&a'.repeat(50_000)}=`,
    `token${' '.repeat(100_000)}`,
  ]) {
    redactText(hostile)
  }
  assert.ok(performance.now() - startMs < 500)
})
