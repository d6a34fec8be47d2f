import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { freePort } from '../../../test/services/free-port.ts'
import { temporaryFolder } from '../../../test/sluice.ts'
import { resolveConfig } from '../../config/config.ts'
import { proxiesSchema } from '../../config/proxy-list.ts'
import { createEventBus } from '../../core/events.ts'
import { DIRECT, egressOf, openIdentities, siteFinder } from './egress-options.ts'

const resolve = (flags: Record<string, unknown>, env: NodeJS.ProcessEnv = {}) =>
  resolveConfig({ flags: flags as never, env, cwd: '/nowhere' })
const problemsOf = async (flags: Record<string, unknown>) =>
  await resolve(flags).then(
    () => [],
    (error) => error.details.notes as string[],
  )

describe('a list of proxies', () => {
  it('is accepted in all common spellings', () => {
    const text = 'socks5://h:1080, http://u:p@h:3128\nh:8080 h:8080:user:pa:ss'
    assert.deepEqual(proxiesSchema.parse(text), [
      ['socks5://h:1080', 'http://u:p@h:3128/', 'http://h:8080/', 'http://user:pa%3Ass@h:8080/'],
    ])
  })

  it('has tiers separated by a semicolon or a line of dashes, and comments', () => {
    assert.deepEqual(proxiesSchema.parse('h:1;h:2,h:3'), [['http://h:1/'], ['http://h:2/', 'http://h:3/']])
    assert.deepEqual(proxiesSchema.parse('# cheap\nh:1\n---\n# dear\nh:2\n'), [['http://h:1/'], ['http://h:2/']])
    assert.deepEqual(proxiesSchema.parse(['h:1', ['h:2']]), [['http://h:1/'], ['http://h:2/']])
  })

  it('comes from a file, a variable, or a variable that names a file', async () => {
    using folder = temporaryFolder()
    const file = join(folder.path, 'proxies.txt')
    writeFileSync(file, 'h:1\nh:2\n')
    const expected = [['http://h:1/', 'http://h:2/']]
    for (const { values } of [
      await resolve({ proxies: `@${file}` }),
      await resolve({}, { SLUICE_PROXIES: 'h:1,h:2' }),
      await resolve({}, { SLUICE_PROXIES_FILE: file }),
    ])
      assert.deepEqual(egressOf(values).proxies, expected)
  })

  it('is rejected without being repeated if it is invalid', async () => {
    for (const proxies of [
      'http://u:geheim@',
      'h:1,ftp://u:geheim@h',
      '@/nowhere/geheim-file'.replace('geheim', 'x'),
      '',
    ]) {
      const [problem] = await problemsOf({ proxies })
      assert.match(problem!, /^proxies \(flag --proxies\)/)
      assert.doesNotMatch(problem!, /geheim/)
    }
    assert.match((await problemsOf({ proxy: 'http://h:1', proxies: 'h:1' })).join(), /list all of them in proxies/)
  })
})

describe('egress', () => {
  it('is a pool of one for one proxy, and none by default', async () => {
    assert.deepEqual(egressOf((await resolve({ proxy: 'socks5://u:p@h:1' })).values).proxies, [['socks5://u:p@h:1']])
    const ways = egressOf((await resolve({})).values)
    assert.deepEqual(ways, DIRECT)
    const addresses = { connectTimeoutMs: 1, allowPrivate: true, allowAddresses: [] }
    const parts = { ways, addresses, siteOf: undefined, needsChromium: false, bus: createEventBus() }
    assert.equal(await openIdentities(parts), undefined)
  })

  it('needs a working proxy at the start, unless it waits for one or some sites need none', async () => {
    const addresses = { connectTimeoutMs: 1000, allowPrivate: true, allowAddresses: [] }
    const ways = { ...DIRECT, proxies: [[`http://u:geheim@127.0.0.1:${await freePort()}`]] }
    const parts = { addresses, siteOf: undefined, needsChromium: false }
    const said: string[] = []
    const bus = createEventBus()
    bus.on((event) => void (event.type === 'log' && said.push(`${event.level} ${event.message}`)))
    await assert.rejects(openIdentities({ ...parts, ways, bus }), { code: 'E_PROXY', message: /^the proxy 127\.0\.0\.1:\d+ cannot be reached/ }) // biome-ignore format: one line
    using waiting = await openIdentities({ ...parts, ways, bus, waitMs: 0, waitsForProxies: true })
    assert.equal(waiting?.proxies?.areAllDown, true)
    said.length = 0
    const sites = { 'a.test': { proxies: 'off' } } as const
    using identities = await openIdentities({ ...parts, ways: { ...ways, sites }, siteOf: siteFinder(sites), bus })
    const identity = await identities!.take({ url: 'http://a.test/' }, new AbortController().signal)
    assert.equal(identity.proxy, undefined)
    assert.equal(said.length, 1)
    assert.match(said[0]!, /^warn the proxy is down .*pages wait/)
  })

  it('does not combine a profile with a custom user agent', async () => {
    assert.match((await problemsOf({ identity: 'browser', userAgent: 'x' })).join(), /identity and userAgent/)
    assert.match((await problemsOf({ identity: 'tls', userAgent: 'x' })).join(), /identity and userAgent/)
    assert.match((await problemsOf({ identity: 'chrome' })).join(), /identity \(flag/)
  })
})

describe('per-site settings', () => {
  it('are found by host, by host and port, and by the nearest parent domain', async () => {
    const sites = {
      'a.test': { rps: 1 },
      'a.test:8080': { rps: 2 },
      '*.b.test': { rps: 3 },
      '*.c.b.test': { rps: 4 },
    }
    const siteOf = siteFinder((await resolve({ sites: JSON.stringify(sites) })).values.sites)!
    const rps = (host: string) => siteOf(host)?.rps
    assert.deepEqual(['a.test', 'a.test:8080', 'a.test:1', 'x.b.test', 'x.c.b.test', 'b.test', 'xa.test'].map(rps), [
      1,
      2,
      1,
      3,
      4,
      undefined,
      undefined,
    ])
    assert.equal(siteFinder({}), undefined)
  })

  it('are validated like every option', async () => {
    const [problem] = await problemsOf({ sites: { 'a.test': { rpm: 1 } } })
    assert.match(problem!, /^sites\.a\.test .*rpm/)
    assert.match(
      (await problemsOf({ sites: { 'a.test': { delay: '3s-1s' } } })).join(),
      /sites\.a\.test\.delay .*range/,
    )
  })
})
