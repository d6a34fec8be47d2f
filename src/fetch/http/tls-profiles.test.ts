import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { showProfile } from '../browser/show-profile.ts'
import { createIdentities } from '../identity/identities.ts'
import { PROFILES, VERSIONS } from '../identity/profiles.ts'
import { loadTlsLibrary } from './tls-library.ts'
import { tlsProfiles } from './tls-profiles.ts'

const NAMES = ['chrome_9', 'chrome_100', 'chrome_149', 'edge_148', 'firefox_151', 'firefox_private_152', 'safari_26.1']

describe('profiles for the TLS library', () => {
  it('have the newest version it has a handshake for', () => {
    const chrome = tlsProfiles(NAMES).find(({ name }) => name === 'chrome-windows')!
    assert.deepEqual(chrome.tls, { browser: 'chrome_149', os: 'windows' })
    assert.match(chrome.userAgent, /Chrome\/149\.0\.0\.0/)
    assert.deepEqual(chrome.hints!.brands, [
      { brand: 'Google Chrome', version: '149' },
      { brand: 'Chromium', version: '149' },
      { brand: 'Not)A;Brand', version: '24' },
    ])
    const firefox = tlsProfiles(NAMES).find(({ name }) => name === 'firefox-linux')!
    assert.equal(firefox.userAgent, 'Mozilla/5.0 (X11; Linux x86_64; rv:151.0) Gecko/20100101 Firefox/151.0')
  })

  it('are never newer than the headers we know', () => {
    const newer = [...NAMES, `chrome_${VERSIONS.chrome}`, `chrome_${VERSIONS.chrome + 1}`, 'safari_26.1.1', 'safari_99']
    const browsers = tlsProfiles(newer).map(({ tls }) => tls!.browser)
    assert.ok(browsers.includes(`chrome_${VERSIONS.chrome}`))
    assert.ok(browsers.includes('safari_26.1'))
  })

  it('match our table: as many, with the same names and platforms', () => {
    assert.deepEqual(tlsProfiles(NAMES).map(({ name }) => name), Object.keys(PROFILES)) // biome-ignore format: one line
  })

  it('send the same headers as the library itself for that browser', async () => {
    const { getEmulationHeaders, getProfiles } = await import('wreq-js')
    for (const profile of tlsProfiles(getProfiles())) {
      const theirs = getEmulationHeaders(profile.tls!.browser as never, profile.tls!.os as never)
      const ours = new Map(profile.headersFor({ isTrustworthy: true, isHttp2: true }).map(([name, value]) => [name.toLowerCase(), value])) // biome-ignore format: one line
      for (const [name, value] of theirs) {
        // Its Firefox on Linux is Ubuntu's own build; ours is Mozilla's.
        if (name !== 'user-agent') assert.equal(ours.get(name), value, `${name} of ${profile.name}`)
        else assert.equal(ours.get(name), value.replace('Ubuntu; ', ''), profile.name)
      }
    }
  })

  it('fail with E_OPTION if the library has none', () => {
    assert.throws(() => tlsProfiles(['okhttp_5']), { code: 'E_OPTION', message: /no chrome up to/ })
  })
})

describe('identities with a handshake', () => {
  it('have one of those profiles, and none for sites that we visit as ourselves', async () => {
    const tls = tlsProfiles(NAMES)
    const siteOf = (host: string) => (host === 'own.test' ? { identity: 'honest' as const } : undefined)
    using identities = createIdentities({ mode: 'tls', tlsProfiles: tls, needsChromium: true, siteOf })
    const { signal } = new AbortController()
    for (let i = 0; i < 20; i++) {
      const { profile } = await identities.take({ url: 'https://a.test/' }, signal)
      assert.ok(tls.includes(profile!))
      assert.ok(profile!.isChromium)
    }
    assert.equal((await identities.take({ url: 'https://own.test/' }, signal)).profile, undefined)
  })

  it('show the profile of our own browser in pages that it opens', async () => {
    const sent: Record<string, unknown>[] = []
    const session = { send: async (_name: string, parameters: Record<string, unknown>) => sent.push(parameters) }
    await showProfile(session as never, tlsProfiles(NAMES)[0]!)
    assert.equal(sent[0]!['userAgent'], PROFILES['chrome-windows'].userAgent)
  })
})

describe('the TLS library', () => {
  it('is named if it is missing, with how to install it', async () => {
    const load = () => Promise.reject(new Error('Cannot find package'))
    await assert.rejects(loadTlsLibrary(load), {
      code: 'E_PACKAGE_MISSING',
      message: /wreq-js/,
      fix: 'npm install wreq-js@3.1.0',
    })
  })
})
