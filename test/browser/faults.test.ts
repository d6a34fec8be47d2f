/** Browsers that die, hang or age are replaced, and leave nothing behind. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempDisposableSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Page as DriverPage } from 'puppeteer-core'
import { isRenderer, killProcess, treeOf } from '../../src/fetch/browser/processes.ts'
import { chromiumForTests } from '../services/chromium.ts'
import { isAlive, openTestPool, until } from './pool.ts'
import { openSite, type Site } from './site.ts'

let site: Site
before(async () => {
  site = await openSite({ '/fine': '<p>fine</p>', '/silent': () => {}, '/hush': () => {} })
})
after(() => site[Symbol.asyncDispose]())

const goneTree = (tree: readonly number[]) => until(() => !tree.some(isAlive), 'all its processes gone')

describe('a browser that', () => {
  it('is killed fails its visits, and the next one gets another', async () => {
    await using pool = await openTestPool()
    const open = await pool.visit(`${site.url}/fine`)
    const failing = pool.failure(`${site.url}/silent`)
    await site.wasAsked('/silent')
    const tree = treeOf(pool.pid)
    assert.ok(tree.length > 2)
    process.kill(pool.pid, 'SIGKILL')
    const error = await failing
    assert.deepEqual([error.code, error.verdict], ['E_BROWSER_CRASHED', 'retry'])
    await assert.rejects(open.live!.content(), { code: 'E_BROWSER_CRASHED' })
    open.release()
    await goneTree(tree)
    const page = await pool.visit(`${site.url}/fine`)
    assert.match(page.text, /fine/)
    page.release()
    assert.deepEqual(pool.events.map(({ what }) => what), ['launched', 'crashed', 'launched']) // biome-ignore format: one line reads better
  })

  it('is killed during a handler causes that handler’s error', async () => {
    for (const work of [
      (driver: DriverPage) => driver.waitForSelector('#never'),
      (driver: DriverPage) => driver.goto(`${site.url}/silent`),
      (driver: DriverPage) => driver.evaluate('new Promise(() => {})'),
      (driver: DriverPage) => driver.waitForNavigation(),
    ]) {
      await using pool = await openTestPool()
      const page = await pool.visit(`${site.url}/fine`)
      const live = page.live!
      const failing = work(live.driver).catch((error: unknown) => error)
      await delay(50) // in progress
      process.kill(pool.pid, 'SIGKILL')
      const error = await failing
      assert.ok(error instanceof Error)
      assert.equal((await live.failureBehind(error))?.code, 'E_BROWSER_CRASHED')
      assert.equal(live.failure?.code, 'E_BROWSER_CRASHED')
      page.release()
    }
  })

  it('is killed while a page is being opened fails that visit', async () => {
    await using pool = await openTestPool({ slots: 8, pagesPerBrowser: 8 })
    ;(await pool.visit(`${site.url}/fine`)).release()
    const failing = Array.from({ length: 6 }, () => pool.failure(`${site.url}/silent`))
    process.kill(pool.pid, 'SIGKILL')
    for (const { code, message } of await Promise.all(failing)) assert.equal(code, 'E_BROWSER_CRASHED', message)
  })

  it('hangs during a handler causes that handler’s error', async () => {
    await using pool = await openTestPool({ hangMsMax: 30_000 })
    const page = await pool.visit(`${site.url}/fine`)
    assert.equal(await page.live!.failureBehind(new TypeError('of the handler itself')), undefined)
    const waiting = page.live!.driver.waitForSelector('#never', { timeout: 300 }).catch((error: unknown) => error)
    const { pid } = pool
    process.kill(pid, 'SIGSTOP')
    const failure = await page.live!.failureBehind(await waiting)
    assert.equal(failure?.code, 'E_BROWSER_CRASHED')
    assert.match(failure.message, /did not answer/)
    process.kill(pid, 'SIGCONT')
    page.release()
  })

  it('loses a page due to a lack of memory tells its handler', async () => {
    await using pool = await openTestPool({ pageBytesMax: 192 * 1024 ** 2 })
    const page = await pool.visit(`${site.url}/fine`)
    const eat = 'new Promise(() => { const all = []; setInterval(() => all.push(new Uint8Array(2e7).fill(7)), 10) })'
    const error = await page.live!.driver.evaluate(eat).catch((error: unknown) => error)
    assert.equal((await page.live!.failureBehind(error))?.code, 'E_BROWSER_CRASHED')
    page.release()
  })

  it('loses a page’s process loses that page only', async () => {
    await using pool = await openTestPool()
    const page = await pool.visit(`${site.url}/fine`)
    const victims = treeOf(pool.pid).filter(isRenderer)
    const failing = page.live!.driver.evaluate('new Promise(() => {})').catch(() => {})
    for (const pid of victims) killProcess(pid)
    await failing
    await assert.rejects(page.live!.content(), { code: 'E_BROWSER_CRASHED' })
    page.release()
    ;(await pool.visit(`${site.url}/fine`)).release()
    assert.deepEqual(pool.events.map(({ what }) => what), ['launched']) // biome-ignore format: one line reads better
  })

  it('hangs is killed with all its processes, and replaced', async () => {
    await using pool = await openTestPool({ hangMsMax: 1000 })
    const failing = pool.failure(`${site.url}/hush`)
    await site.wasAsked('/hush')
    const tree = treeOf(pool.pid)
    process.kill(pool.pid, 'SIGSTOP')
    const error = await failing
    assert.equal(error.code, 'E_BROWSER_CRASHED')
    assert.match(error.message, /no answer for/)
    await pool.happened('hung')
    await goneTree(tree)
    ;(await pool.visit(`${site.url}/fine`)).release()
  })

  it('has opened its share of pages is replaced when the last of them ends', async () => {
    await using pool = await openTestPool({ pagesPerBrowserMax: 2 })
    const pages = await Promise.all([1, 2].map(() => pool.visit(`${site.url}/fine`)))
    const first = pool.pid
    const third = await pool.visit(`${site.url}/fine`)
    assert.notEqual(pool.pid, first)
    assert.ok(isAlive(first))
    for (const page of pages) page.release()
    assert.match((await pool.happened('recycled')).reason, /2 pages/)
    await goneTree([first])
    third.release()
  })

  it('is too large or too old is replaced', async () => {
    await using large = await openTestPool({ browserBytesMax: 1 })
    ;(await large.visit(`${site.url}/fine`)).release()
    assert.match((await large.happened('recycled')).reason, /MB of memory/)
    await using old = await openTestPool({ browserAgeMsMax: 1 })
    ;(await old.visit(`${site.url}/fine`)).release()
    assert.match((await old.happened('recycled')).reason, /s old/)
  })

  it('is idle is closed, all but one at once', async () => {
    await using pool = await openTestPool({ pagesPerBrowser: 1, idleMs: 3000 })
    const pages = await Promise.all([1, 2].map(() => pool.visit(`${site.url}/fine`)))
    assert.equal(pool.pool.browsers, 2)
    for (const page of pages) page.release()
    await until(() => pool.pool.browsers === 1, 'one browser is closed')
    await until(() => pool.pool.browsers === 0, 'the other one, too')
    assert.equal(pool.events.filter(({ what }) => what === 'closed').length, 2)
  })

  it('cannot be found or started says what to do', async () => {
    await using missing = await openTestPool({ executable: '/no/such/browser' })
    const error = await missing.failure(`${site.url}/fine`)
    assert.deepEqual([error.code, error.verdict], ['E_BROWSER_MISSING', 'halt'])
    assert.match(error.fix, /apt install chromium-headless-shell/)
    assert.equal(missing.pool.busy + missing.pool.browsers, 0)
    await using broken = await openTestPool({ executable: '/bin/false' })
    assert.equal((await broken.failure(`${site.url}/fine`)).code, 'E_BROWSER_LAUNCH')
  })
})

describe('our own end', () => {
  it('by kill -9 also ends the browser, and the next start removes leftovers', async () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'sluice-browser-owner-'))
    const child = fileURLToPath(new URL('owner-child.test-kit.ts', import.meta.url))
    const args = [
      '--disable-warning=ExperimentalWarning',
      child,
      `${site.url}/fine`,
      folder.path,
      await chromiumForTests(),
    ]
    const owner = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    const exited = once(owner, 'exit')
    const [line] = (await once(createInterface({ input: owner.stdout }), 'line')) as [string]
    const tree = treeOf(Number(line))
    assert.ok(tree.length > 2)
    owner.kill('SIGKILL')
    await exited
    await goneTree(tree)
    assert.equal(readdirSync(folder.path).length, 1)
    const { makeSpoolFolder } = await import('../../src/fetch/browser/spool-folder.ts')
    makeSpoolFolder(folder.path)
    assert.equal(readdirSync(folder.path).length, 1)
  })

  it('by disposing leaves no process, even in the middle of work', async () => {
    const pool = await openTestPool()
    await pool.visit(`${site.url}/fine`)
    const tree = treeOf(pool.pid)
    const failing = assert.rejects(pool.visit(`${site.url}/silent`))
    await pool[Symbol.asyncDispose]()
    await failing
    await goneTree(tree)
    const early = await openTestPool()
    const starting = assert.rejects(early.visit(`${site.url}/fine`))
    await early[Symbol.asyncDispose]()
    await starting
    assert.equal(early.pool.browsers, 0)
  })
})
