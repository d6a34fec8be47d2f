/**
 * The three parts of undici that we use, imported directly. The package's main entry also loads everything else (fetch, cache,
 * mocks, proxies): 50 ms of CPU and 14 MB of memory at every start. The version is pinned, and every transport test uses these
 * paths.
 */
import { createRequire } from 'node:module'
import type * as undici from 'undici'

const require = createRequire(import.meta.url)

export const Client = require('undici/lib/dispatcher/client.js') as typeof undici.Client
export const Pool = require('undici/lib/dispatcher/pool.js') as typeof undici.Pool
export const buildConnector = require('undici/lib/core/connect.js') as typeof undici.buildConnector
