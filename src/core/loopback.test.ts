/** What counts as this machine, in every spelling an attacker might try. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isFromForeignPage } from './foreign-page.ts'
import { isLoopbackAddress, isLoopbackHost, isLoopbackHostHeader } from './loopback.ts'

const HERE = [
  'localhost',
  'LOCALHOST',
  '127.0.0.1',
  '127.255.255.254',
  '127.1',
  '0x7f.1',
  '0177.0.0.1',
  '2130706433',
  '127.0.0.1.',
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[::ffff:127.0.0.1]',
  '[::FFFF:7F00:1]',
]

const ELSEWHERE = [
  '',
  '127.evil.example',
  '127.0.0.1.evil.example',
  '127.0.0.1.nip.io',
  '127.example.org',
  '127.',
  '127.0.0.256',
  '127.0.0.0.1',
  'localhost.',
  'localhost.evil.example',
  'localhost.localdomain',
  'a.localhost',
  'evil.localhost',
  'xn--localhost',
  'notlocalhost',
  'user@127.0.0.1',
  '127.0.0.1@evil.example',
  '127.0.0.1/',
  '127.0.0.1#',
  '127.0.0.1\\evil.example',
  '%31%32%37.0.0.1',
  '１２７.0.0.1',
  ' 127.0.0.1',
  '127.0.0.1 evil.example',
  '127.0.0.1,evil.example',
  '0.0.0.0',
  '0',
  '128.0.0.1',
  '1.127',
  '10.0.0.1',
  '[::]',
  '[::2]',
  '[::127.0.0.1]',
  '[::1%25lo]',
  '[::ffff:10.0.0.1]',
  '[::1',
  '::1]',
  'ip6-localhost',
]

describe('a host is this machine', () => {
  for (const host of HERE)
    it(`when it is ${host}, with and without a port`, () => {
      assert.equal(isLoopbackHost(host), true)
      for (const header of [host, `${host}:7700`, `${host}:1`]) assert.equal(isLoopbackHostHeader(header), true, header)
    })

  for (const host of ELSEWHERE)
    it(`but not when it is ${JSON.stringify(host)}`, () => {
      assert.equal(isLoopbackHost(host), false)
      for (const header of [host, `${host}:7700`]) assert.equal(isLoopbackHostHeader(header), false, header)
    })

  it('also as a bare IPv6 bind address, which is not a Host header', () => {
    for (const host of ['::1', '::ffff:127.0.0.1']) {
      assert.equal(isLoopbackHost(host), true, host)
      assert.equal(isLoopbackHostHeader(host), false, host)
    }
    for (const host of ['::', '::2', 'fe80::1', '::1%lo']) assert.equal(isLoopbackHost(host), false, host)
  })

  it('but not without a Host header, or with one that has no proper port', () => {
    for (const header of [undefined, '', ':7700', 'localhost:', 'localhost:x', 'localhost:7700:1', 'localhost:123456'])
      assert.equal(isLoopbackHostHeader(header), false, header)
  })
})

it('a socket address is loopback by its number', () => {
  for (const address of ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'])
    assert.equal(isLoopbackAddress(address), true, address)
  for (const address of ['', 'localhost', '127.1', '10.0.0.1', '::', '::ffff:10.0.0.1', '127.evil.example'])
    assert.equal(isLoopbackAddress(address), false, address)
})

describe('a request comes from a foreign page', () => {
  const host = 'localhost:7700'
  it('when the browser says so, whatever else it sends', () => {
    for (const site of ['cross-site', 'same-site', 'Cross-Site', 'same-origin, cross-site', '', 'unheard-of'])
      assert.equal(isFromForeignPage({ host, 'sec-fetch-site': site }), true, site)
    assert.equal(isFromForeignPage({ host, origin: `http://${host}`, 'sec-fetch-site': 'cross-site' }), true)
  })

  it('when its Origin is not ours', () => {
    for (const origin of [
      'null',
      '',
      'http://evil.example',
      'https://localhost:7700',
      'http://localhost:3000',
      'http://localhost',
      'http://127.0.0.1:7700',
      'chrome-extension://abc',
    ])
      assert.equal(isFromForeignPage({ host, origin }), true, origin)
    assert.equal(isFromForeignPage({ origin: 'null' }), true)
    assert.equal(isFromForeignPage({ host: '', origin: '' }), true)
  })

  it('but not when a program sends it, the user typed it, or our own page sends it', () => {
    assert.equal(isFromForeignPage({ host }), false)
    assert.equal(isFromForeignPage({ host, 'sec-fetch-site': 'none' }), false)
    assert.equal(isFromForeignPage({ host, origin: 'http://localhost:7700', 'sec-fetch-site': 'same-origin' }), false)
    assert.equal(isFromForeignPage({ host: 'LOCALHOST:80', origin: 'http://localhost' }), false)
  })
})
