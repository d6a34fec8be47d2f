import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SessionCookie } from '../../core/session-state.ts'
import { sessionHeaders } from './session-cookies.ts'

const cookie = (name: string, more: Partial<SessionCookie> = {}): SessionCookie => ({
  name,
  value: '1',
  domain: 'shop.test',
  path: '/',
  expires: -1,
  httpOnly: true,
  secure: false,
  ...more,
})
const headers = (cookies: SessionCookie[], url: string) => sessionHeaders({ cookies, origins: [] }, url, 1_000_000)

test('sends a cookie to its own host only, and to subdomains if it allows them', () => {
  const both = [cookie('a'), cookie('b', { domain: '.shop.test' })]
  assert.deepEqual(headers(both, 'http://shop.test/x'), { cookie: 'a=1; b=1' })
  assert.deepEqual(headers(both, 'http://my.shop.test/x'), { cookie: 'b=1' })
  assert.deepEqual(headers(both, 'http://myshop.test/x'), {})
  assert.deepEqual(headers(both, 'http://shop.test.evil.test/'), {})
})

test('sends it below its path only, the longest path first', () => {
  const cookies = [cookie('root'), cookie('deep', { path: '/account' })]
  assert.deepEqual(headers(cookies, 'http://shop.test/account/orders'), { cookie: 'deep=1; root=1' })
  assert.deepEqual(headers(cookies, 'http://shop.test/accounting'), { cookie: 'root=1' })
})

test('sends no secure cookies over plain http, and no expired ones', () => {
  const cookies = [
    cookie('secure', { secure: true }),
    cookie('old', { expires: 999 }),
    cookie('new', { expires: 1001 }),
  ]
  assert.deepEqual(headers(cookies, 'http://shop.test/'), { cookie: 'new=1' })
  assert.deepEqual(headers(cookies, 'https://shop.test/'), { cookie: 'secure=1; new=1' })
})

test('sends non-ASCII characters as bytes, and nothing that would break the header', () => {
  const cookies = [cookie('a', { value: 'ü→' }), cookie('b', { value: 'x\r\ny: z' }), cookie('c')]
  assert.deepEqual(headers(cookies, 'http://shop.test/'), { cookie: `a=${Buffer.from('ü→').toString('latin1')}; c=1` })
})
