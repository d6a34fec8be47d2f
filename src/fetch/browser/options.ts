/** The options of a browser pool. */
import type { EventBus } from '../../core/events.ts'
import type { AddressOptions } from '../net/address.ts'

export interface BrowserPoolOptions extends AddressOptions {
  /** Pages open at once; twice the cores is a good start. */
  slots: number
  /** Honest: who we are and where to complain. `navigator.userAgent` shows the same. */
  userAgent: string
  /** Deadline of one visit, from the moment its browser is ready. */
  timeoutMs: number
  /** Largest document that is read from the browser. */
  bodyBytesMax: number
  retryAfterMsMax: number
  /** Folder for profiles and kept downloads; we create our own folder inside it. */
  spool: string
  /** Redirects by servers and scripts, in total. Default 10. */
  redirectsMax?: number
  /** Pages open at once in one browser. Default 8: a crash costs no more than these. */
  pagesPerBrowser?: number
  /** A browser that has opened this many pages is replaced when its last page ends. Default 200. */
  pagesPerBrowserMax?: number
  /** Default 30 minutes. */
  browserAgeMsMax?: number
  /** A browser is replaced when all of its processes together use this much memory. Default 2 GiB. */
  browserBytesMax?: number
  /** A page's process is killed when it uses this much memory. Default 1 GiB. */
  pageBytesMax?: number
  /** Total bytes one visit may receive, subresources included. Default 256 MiB. */
  trafficBytesMax?: number
  /** Largest download that is kept. Default 64 MiB. */
  downloadBytesMax?: number
  /** A browser that does not respond for this long is killed. Default 10 s. */
  hangMsMax?: number
  /** The last browser is closed if no page was opened for this long. Default 60 s. */
  idleMs?: number
  /** How often the browsers are checked. Default 1 s. */
  watchMs?: number
  /** `socks5://[user:password@]host:port` or `http://…` (CONNECT). Carries all traffic, and resolves the names. */
  proxy?: string
  /** The browser's executable. Default: `SLUICE_CHROME`, or the first one found on this machine. */
  executable?: string
  events?: EventBus
  /** Epoch milliseconds. */
  now?: () => number
}

export type Settings = Required<Omit<BrowserPoolOptions, 'proxy' | 'executable' | 'events' | 'lookup' | 'ca'>> &
  Pick<BrowserPoolOptions, 'proxy' | 'executable' | 'events' | 'lookup' | 'ca'>

const MIB = 1024 ** 2

export function withDefaults(options: BrowserPoolOptions): Settings {
  return {
    redirectsMax: 10,
    pagesPerBrowser: 8,
    pagesPerBrowserMax: 200,
    browserAgeMsMax: 30 * 60_000,
    browserBytesMax: 2048 * MIB,
    pageBytesMax: 1024 * MIB,
    trafficBytesMax: 256 * MIB,
    downloadBytesMax: 64 * MIB,
    hangMsMax: 10_000,
    idleMs: 60_000,
    watchMs: 1000,
    now: Date.now,
    ...options,
  }
}
