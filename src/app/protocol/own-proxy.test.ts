import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkOwnProxy } from './own-proxy.ts'

const OPEN = { allowPrivate: true, allowAddresses: [] }

test('accepts a task’s proxy in any form that --proxies takes, or with the login in front', async () => {
  const spellings = {
    'proxy.test:8080': 'http://proxy.test:8080/',
    'bob:PW@proxy.test:80': 'http://bob:PW@proxy.test:80',
    '127.0.0.1:9:bob:PW': 'http://bob:PW@127.0.0.1:9/',
    'proxy.test:9:bob:p:w@x': 'http://bob:p%3Aw%40x@proxy.test:9/',
    'bob:PW@proxy.test:9': 'http://bob:PW@proxy.test:9/',
    'http://bob:PW@proxy.test:9': 'http://bob:PW@proxy.test:9/',
    'socks5://proxy.test:9': 'socks5://proxy.test:9',
  }
  for (const [given, url] of Object.entries(spellings)) assert.equal(await checkOwnProxy(given, OPEN), url)
})

test('rejects an invalid proxy without repeating it, and no spelling bypasses the address rules', async () => {
  for (const bad of ['ftp://bob:PW@proxy.test:1', '@/etc/hostname', 'bob:PW', ''])
    await assert.rejects(checkOwnProxy(bad, OPEN), ({ code, message }) => code === 'E_OPTION' && !/PW/.test(message))
  const closed = { allowPrivate: false, allowAddresses: [] }
  await assert.rejects(checkOwnProxy('127.0.0.1:9:bob:PW', closed), { code: 'E_PRIVATE_ADDRESS' })
})
