/** Browser pools for tests: a real Chromium, a temporary spool, and helpers to inspect the processes. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { ScrapeError } from '../../src/core/errors.ts'
import { createEventBus, type EventOf } from '../../src/core/events.ts'
import type { Page } from '../../src/core/page.ts'
import type { BrowserPoolOptions } from '../../src/fetch/browser/options.ts'
import { type BrowserPool, openBrowserPool } from '../../src/fetch/browser/pool.ts'
import type { BrowserRequest, FetchRequest } from '../../src/fetch/contract.ts'
import { chromiumForTests } from '../services/chromium.ts'

export const never: AbortSignal = new AbortController().signal

export interface TestPool extends AsyncDisposable {
  readonly pool: BrowserPool
  readonly spool: string
  readonly events: readonly EventOf<'browser'>[]
  /** Pid of the most recently started browser. */
  readonly pid: number
  visit(url: string, browser?: BrowserRequest, request?: Partial<FetchRequest>): Promise<Page>
  /** The error of a visit that must fail. */
  failure(url: string, browser?: BrowserRequest, request?: Partial<FetchRequest>): Promise<ScrapeError>
  /** The next event of this kind, or an earlier one. */
  happened(what: EventOf<'browser'>['what']): Promise<EventOf<'browser'>>
}

export async function openTestPool(options: Partial<BrowserPoolOptions> = {}): Promise<TestPool> {
  const spool = mkdtempSync(join(tmpdir(), 'sluice-browser-test-'))
  const bus = createEventBus()
  const events: EventOf<'browser'>[] = []
  bus.on((event) => void (event.type === 'browser' && events.push(event)))
  const pool = openBrowserPool({
    slots: 4,
    userAgent: 'SluiceTest/1.0 (+https://example.com)',
    timeoutMs: 20_000,
    connectTimeoutMs: 5000,
    bodyBytesMax: 1_000_000,
    retryAfterMsMax: 60_000,
    allowPrivate: true,
    allowAddresses: [],
    executable: await chromiumForTests(),
    watchMs: 200,
    ...options,
    spool,
    events: bus,
  })
  const visit: TestPool['visit'] = (url, browser = {}, request = {}) => pool.visit({ url, browser, ...request }, never)
  return {
    pool,
    spool,
    events,
    get pid() {
      return events.findLast((event) => event.what === 'launched')!.pid!
    },
    visit,
    async failure(url, browser, request) {
      let page: Page
      try {
        page = await visit(url, browser, request)
      } catch (error) {
        if (error instanceof ScrapeError) return error
        throw error
      }
      page.release()
      throw new Error(`${url} did not fail, but gave ${page.status}: ${page.text.slice(0, 200)}`)
    },
    async happened(what) {
      await until(() => events.some((event) => event.what === what), `the browser ${what}`)
      return events.find((event) => event.what === what)!
    },
    async [Symbol.asyncDispose]() {
      await pool[Symbol.asyncDispose]()
      const left = existsSync(spool) ? readdirSync(spool) : []
      rmSync(spool, { recursive: true, force: true })
      if (left.length > 0) throw new Error(`left behind in the spool: ${left.join(', ')}`)
    },
  }
}

/** Polls every few milliseconds; fails after a time that no machine needs. */
export async function until(isTrue: () => boolean, what: string): Promise<void> {
  const endsAtMs = performance.now() + 240_000
  while (!isTrue()) {
    if (performance.now() > endsAtMs) throw new Error(`waited too long for: ${what}`)
    await delay(20)
  }
}

/** A zombie, which its parent has not reaped yet, counts as gone. */
export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
