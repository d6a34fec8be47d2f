/**
 * The three parts of undici that we use, imported directly. The package's main entry also loads everything else (fetch, cache,
 * mocks, proxies): 50 ms of CPU and 14 MB of memory at every start. The version is pinned, and every transport test uses these
 * paths.
 */
import { createRequire, Module } from 'node:module'
import type * as undici from 'undici'

const require = createRequire(import.meta.url)

/**
 * HTTP/2 is off wherever we connect (`allowH2: false`), and `node:http2` is 25 ms of every start: it is loaded when it is called, by a
 * scraper with an HTTP client of its own that shares this copy of undici.
 */
function loadHttp2WhenCalled(): void {
  const path = require.resolve('undici/lib/dispatcher/client-h2.js')
  if (require.cache[path] !== undefined) return
  const later = new Module(path)
  later.exports = (...given: unknown[]) => {
    if (require.cache[path] === later) delete require.cache[path]
    return (require(path) as (...given: unknown[]) => unknown)(...given)
  }
  later.loaded = true
  require.cache[path] = later
}

loadHttp2WhenCalled()
export const Client = require('undici/lib/dispatcher/client.js') as typeof undici.Client
export const Pool = require('undici/lib/dispatcher/pool.js') as typeof undici.Pool
export const buildConnector = require('undici/lib/core/connect.js') as typeof undici.buildConnector
