import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cpuMs } from '../../test/cpu-time.ts'
import { withoutLogins } from './logins.ts'
import { readMessage, taskSchema } from './messages.ts'
import { refusalText } from './refusal.ts'

const LOGINS = ['user:geheim@proxy:8080', 'http://user:geheim@proxy:1', 'socks5://u%40x:ge:heim@[::1]:1']

test('removes logins, with and without a scheme, and leaves everything else', () => {
  for (const login of LOGINS) {
    const shown = withoutLogins(JSON.stringify({ proxy: login, at: '2026-11-15T10:00:00Z' }))
    assert.doesNotMatch(shown, /geheim|ge:heim/, shown)
    assert.match(shown, /\*\*\*@(?:proxy|\[::1\]):.*2026-11-15T10:00:00Z/)
  }
  const plain = '{"mail":"me@example.com","url":"https://x.example:8080/a?b=c:d","at":"10:00"}'
  assert.equal(withoutLogins(plain), plain)
})

test('a refused message shows no login, wherever it is truncated', () => {
  for (let padding = 0; padding < 40; padding++) {
    const message = `{"a":"${'x'.repeat(1960 + padding)}","proxy":"user:geheim@proxy:1"`
    const read = readMessage(taskSchema, message, 100_000)
    assert.ok(!read.ok)
    const text = refusalText({ stream: 's', id: '1-0', message }, read.reason, 'w')
    assert.doesNotMatch(text, /user:\w|geheim/, `${padding}`)
  }
  for (const torn of ['user:geheim@proxy', '{"proxy":user:geheim@p}']) {
    const read = readMessage(taskSchema, torn, 100_000)
    assert.doesNotMatch(read.ok ? '' : read.reason, /geheim/)
  }
})

test('is fast on text designed to make it slow', () => {
  const tookMs = cpuMs(() => {
    withoutLogins('a:'.repeat(1000))
    withoutLogins(`${'a'.repeat(2000)}:${'b'.repeat(2000)}`)
  })
  assert.ok(tookMs < 1000, `took ${tookMs} ms`)
})
