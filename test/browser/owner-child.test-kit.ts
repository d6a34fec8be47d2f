/** Opens a page in its own pool, prints its browser's pid, and waits to be killed. */
import { createEventBus } from '../../src/core/events.ts'
import { openBrowserPool } from '../../src/fetch/browser/pool.ts'

const [url, spool, executable] = process.argv.slice(2)
const events = createEventBus()
let pid = 0
events.on((event) => {
  if (event.type === 'browser' && event.what === 'launched') pid = event.pid!
})
const pool = openBrowserPool({
  slots: 1,
  userAgent: 'SluiceTest/1.0',
  timeoutMs: 20_000,
  connectTimeoutMs: 5000,
  bodyBytesMax: 1_000_000,
  retryAfterMsMax: 1000,
  allowPrivate: true,
  allowAddresses: [],
  spool: spool!,
  executable: executable!,
  events,
})
await pool.visit({ url: url!, browser: {} }, new AbortController().signal)
process.stdout.write(`${pid}\n`)
setInterval(() => {}, 1000)
