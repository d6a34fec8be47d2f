/** The demo site as a program: `node test/site/serve.ts --port 4100 --products 1000 --delay 50 --misbehave`. */
import { parseArgs } from 'node:util'
import { startBooksSite } from './books.ts'

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '4100' },
    products: { type: 'string', default: '1000' },
    /** Delay of every response in milliseconds. */
    delay: { type: 'string', default: '0' },
    misbehave: { type: 'boolean', default: false },
    /**
     * The text of /robots.txt; "
     * " in it is a newline.
     */
    robots: { type: 'string' },
    /** Print the statistics as one line of JSON before exiting. */
    stats: { type: 'boolean', default: false },
    /** Stop when standard input ends: for a parent that may be killed before it can stop us. */
    'exit-with-parent': { type: 'boolean', default: false },
  },
})

function whole(name: 'port' | 'products' | 'delay'): number {
  const text = values[name]
  if (!/^\d{1,9}$/.test(text)) throw new RangeError(`--${name} takes a whole number, not ${JSON.stringify(text)}`)
  return Number(text)
}

const site = await startBooksSite({
  port: whole('port'),
  products: whole('products'),
  delayMs: whole('delay'),
  misbehave: values.misbehave,
  robots: values.robots?.replaceAll('\\n', '\n'),
})
console.log(site.url)

const stop = async () => {
  const { requests, byStatus, maxInFlight } = site.stats()
  await site[Symbol.asyncDispose]()
  if (values.stats) console.log(JSON.stringify({ requests, byStatus: Object.fromEntries(byStatus), maxInFlight }))
  process.exit(0)
}
process.once('SIGTERM', stop)
process.once('SIGINT', stop)
if (values['exit-with-parent']) process.stdin.once('end', stop).once('error', stop).resume()
