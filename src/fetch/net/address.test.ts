/** An internal service listens on loopback; whatever the spelling, redirect or DNS answer, it must not be reached uninvited. */
import assert from 'node:assert/strict'
import type { LookupAddress } from 'node:dns'
import { after, before, describe, it } from 'node:test'
import { type HostileSite, openHostileSite } from '../../../test/site/hostile.ts'
import { ScrapeError } from '../../core/errors.ts'
import { normaliseUrl } from '../../core/url.ts'
import { type HttpOptions, openHttp } from '../http/http.ts'
import { isPublicAddress, type Lookup, typedAddresses } from './address.ts'

const never = new AbortController().signal
const PUBLIC = '93.184.215.14'

function options(more: Partial<HttpOptions>): HttpOptions {
  return {
    userAgent: 'SluiceTest/1.0',
    timeoutMs: 2000,
    connectTimeoutMs: 500,
    bodyBytesMax: 100_000,
    redirectsMax: 5,
    connectionsPerHost: 2,
    retryAfterMsMax: 1000,
    allowPrivate: false,
    allowAddresses: [],
    ...more,
  }
}

/** Gives `answers` in order, and then repeats the last one. */
function scripted(...answers: (readonly string[])[]): Lookup & { asked: string[] } {
  const asked: string[] = []
  const lookup: Lookup = (hostname, callback) => {
    const answer = answers[Math.min(asked.length, answers.length - 1)]!
    asked.push(hostname)
    const addresses: LookupAddress[] = answer.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
    setImmediate(callback, null, addresses)
  }
  return Object.assign(lookup, { asked })
}

async function codeOf(url: string, more: Partial<HttpOptions> = {}): Promise<string> {
  await using http = openHttp(options(more))
  return await http.exchange({ url }, never).then(
    (page) => `page ${page.status}`,
    (error: unknown) => (error instanceof ScrapeError ? error.code : String(error)),
  )
}

describe('isPublicAddress', () => {
  for (const ip of [PUBLIC, '8.8.8.8', '1.1.1.1', '2606:4700::1111', '2001:4860:4860::8888', '::ffff:8.8.8.8']) {
    it(`lets ${ip} pass`, () => assert.equal(isPublicAddress(ip), true))
  }
  const hidden = [
    ...[
      '127.0.0.1',
      '127.255.255.254',
      '0.0.0.0',
      '0.1.2.3',
      '10.0.0.1',
      '172.16.0.1',
      '172.31.255.255',
      '192.168.1.1',
    ],
    ...['169.254.169.254', '100.64.0.1', '192.0.0.1', '192.0.2.1', '198.18.0.1', '198.51.100.1', '203.0.113.1'],
    ...['224.0.0.1', '240.0.0.1', '255.255.255.255', '192.88.99.1'],
    ...['::', '::1', '::127.0.0.1', '::7f00:1', '::ffff:127.0.0.1', '::ffff:a00:1', '::ffff:0:127.0.0.1'],
    ...['64:ff9b::127.0.0.1', '64:ff9b::8.8.8.8', '64:ff9b:1::1', '2002:7f00:1::', '2001::1', '2001:db8::1'],
    ...['fe80::1', 'fec0::1', 'fc00::1', 'fd12:3456::1', 'ff02::1', '100::1', '4000::1', '5f00::1'],
    ...['', 'localhost', '127.1', 'fe80::1%eth0', '1.2.3.4.5'],
  ]
  for (const ip of hidden) {
    it(`holds ${JSON.stringify(ip)} back`, () => assert.equal(isPublicAddress(ip), false))
  }
})

describe('the address guard', () => {
  let inside: HostileSite
  let outside: HostileSite
  before(async () => {
    inside = await openHostileSite()
    outside = await openHostileSite()
  })
  after(async () => {
    await inside[Symbol.asyncDispose]()
    await outside[Symbol.asyncDispose]()
  })

  const spellings = (port: number) => [
    ...['127.0.0.1', '127.1', '127.0.1', '2130706433', '0x7f000001', '0x7f.1', '0177.0.0.1', '017700000001', '127.0.0.1.'],
    ...['0', '0.0.0.0', '127.127.127.127', '１２７.０.０.１', '127。0。0。1', '%31%32%37.0.0.1', 'ⓛocalhost'],
    ...['[::1]', '[::]', '[0:0:0:0:0:0:0:1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::127.0.0.1]'],
    ...['[64:ff9b::7f00:1]', '[2002:7f00:1::]', '[::ffff:0:127.0.0.1]'],
    ...['localhost', 'localhost.', 'LOCALHOST', 'user:pass@127.0.0.1', 'example.com@127.0.0.1', 'example.com:80@127.0.0.1'],
  ].map((host) => `http://${host}:${port}/page`) // biome-ignore format: one list

  it('refuses every spelling of a private address', async () => {
    for (const spelling of spellings(inside.port)) {
      const url = normaliseUrl(spelling)
      assert.equal(await codeOf(url), 'E_PRIVATE_ADDRESS', `${spelling} is ${url}`)
    }
    assert.equal(inside.connections, 0)
  })

  it('refuses every spelling as the target of a redirect', async () => {
    const allowAddresses = [`127.0.0.1:${outside.port}`]
    for (const to of spellings(inside.port)) {
      assert.equal(await codeOf(outside.url('redirect-to', { to }), { allowAddresses }), 'E_PRIVATE_ADDRESS', to)
    }
    assert.equal(inside.connections, 0)
  })

  it('refuses the metadata service of clouds and odd ports', async () => {
    for (const url of ['http://169.254.169.254/latest/meta-data/', 'http://[fd00:ec2::254]/', 'http://10.0.0.1:0/']) {
      assert.equal(await codeOf(url), 'E_PRIVATE_ADDRESS', url)
    }
  })

  it('refuses a public name with a private address', async () => {
    for (const answer of [['127.0.0.1'], ['::1'], ['::ffff:127.0.0.1'], ['10.1.2.3'], ['64:ff9b::7f00:1']]) {
      const code = await codeOf(`http://public.test:${inside.port}/page`, { lookup: scripted(answer) })
      assert.equal(code, 'E_PRIVATE_ADDRESS', answer.join())
    }
    assert.equal(inside.connections, 0)
  })

  it('refuses a name with a private address among public ones', async () => {
    for (const answer of [
      [PUBLIC, '127.0.0.1'],
      ['127.0.0.1', PUBLIC],
    ]) {
      const code = await codeOf(`http://mixed.test:${inside.port}/page`, { lookup: scripted(answer) })
      assert.equal(code, 'E_PRIVATE_ADDRESS')
    }
    assert.equal(inside.connections, 0)
  })

  it('checks each answer it connects with, so a name that changes its answer gets nowhere', async () => {
    const lookup = scripted(['127.0.0.1'])
    await using http = openHttp(options({ lookup }))
    const ask = () =>
      http.exchange({ url: `http://rebind.test:${inside.port}/page` }, never).catch((error) => error.code)
    assert.equal(await ask(), 'E_PRIVATE_ADDRESS')
    assert.equal(await ask(), 'E_PRIVATE_ADDRESS')
    assert.deepEqual(lookup.asked, ['rebind.test', 'rebind.test'])
    assert.equal(inside.connections, 0)
  })

  it('reaches exactly what is allowed', async () => {
    const allowAddresses = [`localhost:${outside.port}`]
    assert.equal(await codeOf(`http://localhost:${outside.port}/page`, { allowAddresses }), 'page 200')
    assert.equal(await codeOf(`http://127.0.0.1:${outside.port}/page`, { allowAddresses }), 'E_PRIVATE_ADDRESS')
    assert.equal(await codeOf(`http://localhost:${inside.port}/page`, { allowAddresses }), 'E_PRIVATE_ADDRESS')
    assert.equal(inside.connections, 0)
  })

  it('reads an allowed address in any spelling', async () => {
    for (const host of ['127.1', 'LocalHost', 'localhost.', '127.0.0.1']) {
      const url = normaliseUrl(`http://${host}:${outside.port}/page`)
      assert.equal(await codeOf(url, { allowAddresses: [`${host}:${outside.port}`] }), 'page 200', host)
    }
    assert.throws(() => openHttp(options({ allowAddresses: ['http://a b'] })), { code: 'E_OPTION' })
  })

  it('lets a name lead to an address that is allowed itself', async () => {
    const allowAddresses = [`127.0.0.1:${outside.port}`]
    const lookup = scripted(['127.0.0.1'])
    assert.equal(await codeOf(`http://name.test:${outside.port}/page`, { allowAddresses, lookup }), 'page 200')
  })

  it('holds an allowed name to its first answer', async () => {
    const allowAddresses = [`start.test:${inside.port}`]
    const lookup = scripted([PUBLIC], ['127.0.0.1'])
    await using http = openHttp(options({ allowAddresses, lookup, connectTimeoutMs: 50 }))
    const ask = () =>
      http.exchange({ url: `http://start.test:${inside.port}/page` }, never).catch((error) => error.code)
    assert.notEqual(await ask(), 'E_PRIVATE_ADDRESS') // there is no such server, but it was tried
    assert.equal(await ask(), 'E_PRIVATE_ADDRESS')
    assert.equal(inside.connections, 0)
  })

  it('reaches everything when the user says so', async () => {
    assert.equal(await codeOf(outside.url('page'), { allowPrivate: true }), 'page 200')
  })

  it('says that a name has no address', async () => {
    const notFound = Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' })
    const failing: Lookup = (_hostname, callback) => setImmediate(callback, notFound, [])
    assert.equal(await codeOf('http://missing.test/', { lookup: failing }), 'E_DNS')
    assert.equal(await codeOf('http://missing.test/', { lookup: scripted([]) }), 'E_DNS')
  })
})

describe('a URL that a user typed', () => {
  it('is allowed if it is an address or localhost, in any spelling, but not if it is a name', () => {
    const typed = [
      'http://127.0.0.1:8080/a',
      'http://[::1]:81/',
      'http://0x7f.1/',
      'http://[::ffff:10.0.0.1]:82/',
      'http://localhost:83/x',
      'http://shop.localhost./',
      '169.254.169.254:80',
      'http://loopback.inside.test/',
      'http://127.0.0.1.inside.test:8080/',
      'http://localhost.inside.test/',
      'not a url',
    ]
    assert.deepEqual(typedAddresses(typed), [
      '127.0.0.1:8080',
      '[::1]:81',
      '127.0.0.1',
      '[::ffff:a00:1]:82',
      'localhost:83',
      'shop.localhost',
      '169.254.169.254',
    ])
  })

  it('does not let localhost stand for another machine', async () => {
    const allowAddresses = typedAddresses(['http://localhost:9/'])
    for (const other of ['10.0.0.5', '169.254.169.254', '::ffff:10.0.0.5'])
      assert.equal(
        await codeOf('http://localhost:9/', { allowAddresses, lookup: scripted([other]) }),
        'E_PRIVATE_ADDRESS',
      )
    assert.equal(
      await codeOf('http://localhost:9/', { allowAddresses, lookup: scripted(['127.0.0.1']) }),
      'E_CONNECTION',
    )
  })
})
