/**
 * Many Greenhouse boards on many loopback hosts, with delayed responses, some of them faulty: 429, 503, or none at all.
 *
 *   node bench/job-board-site.ts DELAY_MS TROUBLE_SHARE JOBS HOSTS
 */
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { greenhouseJob } from '../test/site/boards/greenhouse.ts'

const [delayMs = 500, troubleShare = 0, jobs = 40, hosts = 16] = process.argv.slice(2).map(Number)
/** Descriptions make up most of a real posting. */
const CONTENT = `&lt;p&gt;${'Build and run services that people rely on every day. '.repeat(60)}&lt;/p&gt;`
const PAY = [{ min_cents: 12_000_000, max_cents: 15_000_000, currency_type: 'USD', title: 'Zone A', blurb: '' }]

const job = (n: number) => ({ ...greenhouseJob(n), content: CONTENT })
const bodies = Array.from({ length: jobs }, (_, n) => JSON.stringify({ ...job(n), pay_input_ranges: PAY }))
const list = JSON.stringify({ jobs: Array.from({ length: jobs }, (_, n) => job(n)), meta: { total: jobs } })

const answer: RequestListener = (request, response) => {
  const path = new URL(request.url!, 'http://board').pathname
  const isRobots = path === '/robots.txt'
  const chance = isRobots ? 1 : Math.random() / troubleShare
  if (chance < 1 / 3) return // never answered
  setTimeout(() => {
    if (chance < 2 / 3) return void response.writeHead(503).end()
    if (chance < 1) return void response.writeHead(429, { 'retry-after': '1' }).end()
    const id = /^\/v1\/boards\/[\w-]+\/jobs(?:\/(\d+))?$/.exec(path)
    const body = id === null ? undefined : id[1] === undefined ? list : bodies[Number(id[1]) - 4_000_000]
    response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' }).end(body)
  }, delayMs)
}

/** All of 127.0.0.0/8 is this machine: a separate host for each board, as in reality. */
async function listen(host: string): Promise<string> {
  const server = createServer(answer)
  server.keepAliveTimeout = 60_000
  server.listen(0, host)
  await once(server, 'listening')
  return `http://${host}:${(server.address() as AddressInfo).port}/`
}

const urls = await Promise.all(Array.from({ length: hosts }, (_, i) => listen(`127.0.1.${i + 1}`)))
process.stdout.write(`${JSON.stringify(urls)}\n`)
process.stdin.on('end', () => process.exit()).resume() // ends with its parent
