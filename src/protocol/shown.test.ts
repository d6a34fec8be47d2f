import assert from 'node:assert/strict'
import { test } from 'node:test'
import { redactValue } from '../core/redact.ts'
import { refusalText } from './refusal.ts'
import { shownMessage, withoutSecrets } from './shown.ts'

const proxyShown = (proxy: unknown) =>
  (withoutSecrets({ params: { proxy } }) as { params: { proxy: unknown } }).params.proxy

test('shows only host and port of a proxy, in any notation', () => {
  const shown: [given: unknown, shown: unknown][] = [
    ['127.0.0.1:9:bob:PW', '***@127.0.0.1:9'],
    ['proxy.test:9:bob:P:W', '***@proxy.test:9'],
    ['bob:PW@proxy.test:9', '***@proxy.test:9'],
    ['socks5://bob:P@W@[::1]:9', '***@[::1]:9'],
    ['http://proxy.test:9', 'http://proxy.test:9'],
    ['proxy.test:9', 'proxy.test:9'],
    ['bob:PW', '***'],
    ['bob:1234:PW@proxy.test:9', '***@proxy.test:9'],
    ['b.ob:1234:PW@x:9:y', '***'],
    ['PW', '***'],
    ['http://proxy.test:9/?password=PW', '***'],
    [{ password: 'PW' }, { password: '***' }],
    [
      { host: 'proxy.test', port: 9, user: 'bob', pass: 'PW', more: { a: 'PW' } },
      { host: 'proxy.test', port: 9, user: '***', pass: '***', more: '***' },
    ],
    [
      ['127.0.0.1:9:bob:PW', ['PW']],
      ['***@127.0.0.1:9', ['***']],
    ],
    [null, null],
  ]
  for (const [given, wanted] of shown) assert.deepEqual(proxyShown(given), wanted)
})

test('hides the values of secret-sounding names, the same as in logs, at any depth', () => {
  const names = [
    'password',
    'api_key',
    'apiKey',
    'accessToken',
    'Authorization',
    'cookie',
    'sid',
    'client_secret',
    'pwd',
  ]
  const plain = ['search_term', 'keyword', 'monkey', 'author', 'location', 'session_count']
  for (const name of [...names, ...plain]) {
    const value = { [name]: 'PW' }
    assert.deepEqual(withoutSecrets(value), redactValue(value), name)
    assert.equal(JSON.stringify(withoutSecrets({ args: [value] })).includes('PW'), plain.includes(name), name)
  }
})

test('a refused message shows no secrets, whether JSON, truncated, or too long to parse', () => {
  const secrets = [
    '{"proxy":"127.0.0.1:9:bob:PW"}',
    '{"proxy":"bob:PW"}',
    '{"proxy":{"password":"PW"}}',
    '{"proxies":["PW"],"password":{"a":"PW"}}',
    '{"password":"a\\"PW"}',
    '{"where":"127.0.0.1:9:bob:PW"}',
  ]
  for (const params of secrets) {
    const whole = `{"scraper_type":"lever","params":${params}}`
    for (const message of [whole, whole.padEnd(70_000), whole.slice(0, -2), whole.slice(0, -3)]) {
      const text = refusalText({ stream: 's', id: '1-0', message }, 'a reason', 'w')
      assert.doesNotMatch(text, /PW/, text)
      assert.match(text, /scraper_type/)
    }
  }
  assert.equal(shownMessage('{"proxy":"bob:PW@x.test:9","n":1'), '{"proxy":"***@x.test:9","n":1')
  assert.equal(shownMessage('{"prox\\u0079":"PW"}'), '{"proxy":"***"}')
})

test('keeps what is not secret, and handles messages of any depth', () => {
  const plain =
    '{"mail":"me@example.com","url":"https://x.example:8080/a?b=c:d","at":"2026-11-15T10:00:00+01:00","n":[1,true]}'
  assert.equal(shownMessage(plain), plain)
  assert.ok(shownMessage(`${'['.repeat(30_000)}${']'.repeat(30_000)}`).length < 100)
})
