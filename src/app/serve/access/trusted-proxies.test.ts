/** Which client a request comes from when there are proxies in front. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TrustedProxies } from './trusted-proxies.ts'

test('trusts forwarded addresses only from a named proxy', () => {
  const proxies = new TrustedProxies('127.0.0.1, 10.0.0.0/8,::1')
  const from = (socket: string, headers: Record<string, string>) => proxies.clientAddress(headers, socket)
  const forwarded = { 'x-forwarded-for': '203.0.113.9' }
  assert.equal(from('127.0.0.1', forwarded), '203.0.113.9')
  assert.equal(from('::ffff:127.0.0.1', forwarded), '203.0.113.9')
  assert.equal(from('::1', forwarded), '203.0.113.9')
  assert.equal(from('127.0.0.2', forwarded), '127.0.0.2')
  assert.equal(from('203.0.113.1', forwarded), '203.0.113.1')
  assert.equal(from('::ffff:203.0.113.1', {}), '203.0.113.1')
  assert.equal(new TrustedProxies().clientAddress(forwarded, '127.0.0.1'), '127.0.0.1')
})

test('uses the last address that is not a proxy’s, whatever the client put before it', () => {
  const proxies = new TrustedProxies('127.0.0.1,10.0.0.0/8')
  const from = (list: string) => proxies.clientAddress({ 'x-forwarded-for': list }, '127.0.0.1')
  assert.equal(from('127.0.0.1, 203.0.113.9'), '203.0.113.9')
  assert.equal(from('198.51.100.1, 203.0.113.9, 10.1.2.3'), '203.0.113.9')
  assert.equal(from('203.0.113.9:4711'), '203.0.113.9')
  assert.equal(from('[2001:db8::1]:4711'), '2001:db8::1')
  assert.equal(from('2001:db8::1'), '2001:db8::1')
  assert.equal(from('10.0.0.7, 10.0.0.8'), '10.0.0.7')
  for (const nonsense of ['', 'unknown', '203.0.113.9, nonsense', '<script>', '203.0.113.999', ',,,'])
    assert.equal(from(nonsense), '127.0.0.1', nonsense)
})

test('reads Forwarded too, and trusts neither header if both are present and differ', () => {
  const proxies = new TrustedProxies('127.0.0.1')
  const from = (headers: Record<string, string>) => proxies.clientAddress(headers, '127.0.0.1')
  assert.equal(from({ forwarded: 'for=203.0.113.9;proto=https' }), '203.0.113.9')
  assert.equal(from({ forwarded: 'for=198.51.100.1, For="[2001:db8::1]:4711";by=127.0.0.1' }), '2001:db8::1')
  assert.equal(from({ forwarded: 'for=_hidden' }), '127.0.0.1')
  assert.equal(from({ forwarded: 'for=203.0.113.9', 'x-forwarded-for': '203.0.113.9' }), '203.0.113.9')
  assert.equal(from({ forwarded: 'for=198.51.100.1', 'x-forwarded-for': '203.0.113.9' }), '127.0.0.1')
})

test('recognises a proxied request by its headers or by the proxy’s address', () => {
  const proxies = new TrustedProxies('127.0.0.2')
  for (const name of ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip'])
    assert.equal(proxies.isForwarded({ [name]: 'x' }, '127.0.0.1'), true, name)
  assert.equal(proxies.isForwarded({}, '127.0.0.2'), true)
  assert.equal(proxies.isForwarded({ host: 'localhost', accept: '*/*' }, '127.0.0.1'), false)
})

test('rejects an invalid address', () => {
  for (const text of [
    'localhost',
    '10.0.0.0/33',
    '::1/129',
    '127.1',
    '127.0.0.1,',
    ',',
    '*',
    '127.evil.example',
    '::1%lo',
  ])
    assert.throws(() => new TrustedProxies(text), { code: 'E_OPTION' }, text)
})
