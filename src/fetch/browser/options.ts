/** What a browser pool can be told. */
import type { EventBus } from '../../core/events.ts'
import type { AddressOptions } from '../net/address.ts'

export interface BrowserPoolOptions extends AddressOptions {
  /** Pages open at once; twice the cores is a good start. */
  slots: number
  /** Honest: who we are and where to complain. `navigator.userAgent` says the same. */
  userAgent: string
  /** Deadline of one visit, from the moment its browser is there. */
  timeoutMs: number
  /** Of the document, as it is taken from the browser. */
  bodyBytesMax: number
  retryAfterMsMax: number
  /** Folder for profiles and kept downloads; ours is made below it. */
  spool: string
  /** Redirects of servers and of scripts, together. Default 10. */
  redirectsMax?: number
  /** Pages at once in one browser. Default 8: a crash costs no more than these. */
  pagesPerBrowser?: number
  /** A browser that has opened this many is replaced when its last page ends. Default 200. */
  pagesPerBrowserMax?: number
  /** Default 30 minutes. */
  browserAgeMsMax?: number
  /** Memory of a browser with all its processes, from which on it is replaced. Default 2 GiB. */
  browserBytesMax?: number
  /** Memory of one page's process, at which it is killed. Default 1 GiB. */
  pageBytesMax?: number
  /** All that one visit may receive, subresources included. Default 256 MiB. */
  trafficBytesMax?: number
  /** Of one kept download. Default 64 MiB. */
  downloadBytesMax?: number
  /** A browser that does not answer for this long is killed. Default 10 s. */
  hangMsMax?: number
  /** The last browser is closed when no page was opened for this long. Default 60 s. */
  idleMs?: number
  /** How often browsers are looked after. Default 1 s. */
  watchMs?: number
  /** `socks5://[user:password@]host:port` or `http://…` (CONNECT). All traffic goes there, and names are resolved there. */
  proxy?: string
  /** The browser's program. Default: `SLUICE_CHROME`, or the first one found on this machine. */
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
