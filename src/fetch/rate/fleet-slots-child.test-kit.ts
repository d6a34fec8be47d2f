/**
 * A worker of a fleet: requests a page again and again, as fast as it may, until it is killed. A 429 is a pause of 2 s.
 * `node fleet-slots-child.test-kit.ts SERVER PAGE RPS [PER_MINUTE]`
 */
import { openPostgresSlots } from './postgres-slots.ts'
import { createRateLimit } from './rate-limit.ts'
import { openRedisSlots } from './redis-slots.ts'

const [server, page, rps, perMinuteText = '0'] = process.argv.slice(2)
const perMinute = Number(perMinuteText)
const isRedis = server!.startsWith('redis:')
const fleet = isRedis ? await openRedisSlots({ url: server!, perMinute }) : await openPostgresSlots({ url: server! })
const perHost = { concurrency: 4, rps: Number(rps), delayMs: 0, perMinute }
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
