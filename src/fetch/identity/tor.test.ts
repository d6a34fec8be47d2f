/** Real Tor daemons without a network: they never finish bootstrapping, and everything before that is tested. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { torForTests } from '../../../test/services/tor.ts'
import { temporaryFolder } from '../../../test/sluice.ts'
import type { ScrapeError } from '../../core/errors.ts'
import { openHttp } from '../http/http.ts'
import { openTor, type Tor } from './tor.ts'

/** Their only way out is a proxy that does not exist, so that no test reaches the internet. */
const OFFLINE = ['Socks5Proxy 127.0.0.1:1']
const never = new AbortController().signal

async function open(dataDir: string): Promise<Tor> {
  const { path, env } = await torForTests()
  return await openTor({ binary: path, env, dataDir, settings: OFFLINE })
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const httpThrough = (proxy: string) =>
  openHttp({
    userAgent: 'SluiceTest/1.0',
    timeoutMs: 2000,
    connectTimeoutMs: 1000,
    bodyBytesMax: 100_000,
    redirectsMax: 5,
    connectionsPerHost: 2,
    retryAfterMsMax: 1000,
    allowPrivate: false,
    allowAddresses: [],
    proxy,
  })

describe('Tor', () => {
  it('runs twice at once, each with its own ports and data, and leaves nothing behind', async () => {
    using folder = temporaryFolder()
    const pids: number[] = []
    {
      await using one = await open(folder.path)
      await using two = await open(folder.path)
      pids.push(one.pid, two.pid)
      assert.notEqual(one.socksUrl, two.socksUrl)
      assert.match(one.socksUrl, /^socks5:\/\/127\.0\.0\.1:\d+$/)
      assert.equal(readdirSync(folder.path).length, 2)
      assert.deepEqual(pids.map(isAlive), [true, true])
    }
    assert.deepEqual(readdirSync(folder.path), [])
    assert.deepEqual(pids.map(isAlive), [false, false])
  })

  it('accepts the request for new circuits', async () => {
    using folder = temporaryFolder()
    await using tor = await open(folder.path)
    await tor.newCircuit()
    await Promise.all([tor.newCircuit(), tor.newCircuit()])
  })

  it('gives every session separate circuits', async () => {
    using folder = temporaryFolder()
    await using tor = await open(folder.path)
    const one = new URL(tor.socksUrlFor('a/b'))
    assert.equal(decodeURIComponent(one.username), 'a/b')
    assert.notEqual(one.href, tor.socksUrlFor('c'))
    assert.equal(`socks5://${one.host}`, tor.socksUrl)
  })

  it('reports its progress, and stops waiting for the network when aborted', async () => {
    using folder = temporaryFolder()
    await using tor = await open(folder.path)
    const { percent, summary } = await tor.bootstrapState()
    assert.ok(percent >= 0 && percent < 100 && summary !== '', `${percent} ${summary}`)
    await assert.rejects(tor.bootstrapped({ timeoutMs: 50 }), (error: ScrapeError) => {
      assert.equal(error.code, 'E_PROXY')
      assert.match(error.message, /Tor is not in the network after 50 ms: \d+ %/)
      return true
    })
    const signal = AbortSignal.timeout(50)
    await assert.rejects(tor.bootstrapped({ timeoutMs: 60_000, signal }), { name: 'AbortError' })
  })

  it('without a network fails with an error, and returns no page', async () => {
    using folder = temporaryFolder()
    await using tor = await open(folder.path)
    await using http = httpThrough(tor.socksUrlFor('one'))
    await assert.rejects(http.exchange({ url: 'http://example.com/' }, never), (error: ScrapeError) => {
      assert.ok(['E_PROXY', 'E_CONNECTION', 'E_TIMEOUT_CONNECT'].includes(error.code), error.message)
      return true
    })
  })

  it('that was killed is an error with a verdict', async () => {
    using folder = temporaryFolder()
    await using tor = await open(folder.path)
    await using http = httpThrough(tor.socksUrl)
    process.kill(tor.pid, 'SIGKILL')
    while (isAlive(tor.pid)) await delay(5)
    await assert.rejects(tor.newCircuit(), { code: 'E_PROXY' })
    await assert.rejects(http.exchange({ url: 'http://example.com/' }, never), { code: 'E_PROXY' })
  })

  it('is gone after its owner was killed with -9', async () => {
    using folder = temporaryFolder()
    const { path, env } = await torForTests()
    const file = fileURLToPath(new URL('tor-child.test-kit.ts', import.meta.url))
    const owner = spawn(process.execPath, [file, path, folder.path], { stdio: ['ignore', 'pipe', 'inherit'], env })
    const pid = Number((await once(owner.stdout, 'data'))[0])
    assert.ok(isAlive(pid))
    owner.kill('SIGKILL')
    await once(owner, 'exit')
    while (isAlive(pid)) await delay(20)
  })

  it('that is not installed is an error that says what to install', async () => {
    using folder = temporaryFolder()
    await assert.rejects(openTor({ binary: '/no/such/tor', dataDir: folder.path }), (error: ScrapeError) => {
      assert.equal(error.code, 'E_SERVICE')
      assert.match(error.fix, /apt-get install tor/)
      return true
    })
    assert.deepEqual(readdirSync(folder.path), [])
  })
})
