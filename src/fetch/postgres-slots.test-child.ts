/**
 * A worker of a fleet: asks a page again and again, as fast as it may, until it is killed. A 429 is a pause of 2 s.
 * `node postgres-slots.test-child.ts DATABASE PAGE RPS`
 */
import { openPostgresSlots } from './postgres-slots.ts'
import { createRateLimit } from './rate-limit.ts'

const [database, page, rps] = process.argv.slice(2)
const fleet = await openPostgresSlots({ url: database! })
const perHost = { concurrency: 4, rps: Number(rps), delayMs: 0 }
const limit = createRateLimit({ perHost, concurrency: 8, crawlDelayMsMax: 60_000, fleet })
const never = new AbortController().signal

async function work(): Promise<void> {
  for (;;) {
    using _slot = await limit.acquire('site.test', never)
    const answer = await fetch(page!)
    await answer.text()
    if (answer.status === 429) limit.pause('site.test', Date.now() + 2000, 'a 429')
  }
}

await fetch(new URL('/ready', page!))
process.stdin.once('data', () => {
  for (let i = 0; i < 4; i++) void work()
})
