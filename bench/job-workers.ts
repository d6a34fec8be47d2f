/**
 * Workers of the task protocol on job boards with a delay of half a second: jobs per minute of one instance, the memory of an
 * additional instance, and the whole system while a tenth of all responses is faulty (429, 503, none at all) and a third of its
 * proxies is dead: real ones (tinyproxy), killed after the workers have seen them alive.
 *
 *   node bench/job-workers.ts [--in-flight 64] [--instances 4] [--tasks 60] [--jobs 40] [--delay 500] [--proxies 12]
 *                             [--only one|several|system] [--json]
 *
 * Memory: resident memory of the worker process under load (highest sample after the first third of the tasks), with one instance
 * and with several, divided by the number of additional instances. Job pages are the postings' own pages.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Redis } from 'ioredis'
import type { ResultMessage } from '../src/protocol/messages.ts'
import { TaskProducer } from '../src/protocol/redis-producer.ts'
import { streamNames } from '../src/protocol/streams.ts'
import { startRedis } from '../test/services/redis.ts'
import { type HttpProxyServer, tinyproxyForTests } from '../test/services/tinyproxy.ts'
import { statusMb, treeOf } from './process-tree.ts'

const SLUICE = fileURLToPath(new URL('../bin/sluice', import.meta.url))
const SITE = fileURLToPath(new URL('./job-board-site.ts', import.meta.url))
const HOSTS = 16
const TIMEOUT_MS = 600_000

interface Plan {
  instances: number
  as: 'threads' | 'processes'
  inFlight: number
  tasks: number
  jobs: number
  delayMs: number
  troubleShare: number
  /** A third of them dies before the first task. */
  proxies: number
  flags: readonly string[]
}

async function startSite({ delayMs, troubleShare, jobs }: Plan): Promise<AsyncDisposable & { urls: string[] }> {
  const args = [SITE, String(delayMs), String(troubleShare), String(jobs), String(HOSTS)]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return { urls: JSON.parse(line), [Symbol.asyncDispose]: () => end(child, () => child.stdin.end()) }
}

async function end(child: ChildProcess, ask: () => void): Promise<void> {
  const exited = child.exitCode === null ? once(child, 'exit') : undefined
  ask()
  await exited
}

async function startProxies({ proxies }: Plan, parts: AsyncDisposableStack): Promise<HttpProxyServer[]> {
  const login = { user: 'bench', password: 'bench' }
  return await Promise.all(Array.from({ length: proxies }, async () => parts.use(await tinyproxyForTests(login))))
}

function startWorker(url: string, { instances, as, inFlight, flags }: Plan): ChildProcess & AsyncDisposable {
  const args = ['worker', '--type', 'greenhouse', '--frontier', url, '--instances', String(instances), '--as', as]
  const limits = ['--concurrency', String(inFlight), '--rps', '0', '--timeout', '5s', '--allow-private', '--quiet']
  const child = spawn(SLUICE, [...args, ...limits, ...flags], { stdio: ['ignore', 'ignore', 'inherit'] })
  return Object.assign(child, { [Symbol.asyncDispose]: () => end(child, () => child.kill('SIGTERM')) })
}

async function measure(plan: Plan) {
  await using server = await startRedis()
  await using site = await startSite(plan)
  await using parts = new AsyncDisposableStack()
  const proxies = await startProxies(plan, parts)
  const through = proxies.length === 0 ? [] : ['--proxies', proxies.map((proxy) => proxy.url).join(',')]
  const dying = proxies.slice(0, Math.floor(proxies.length / 3))
  const names = streamNames()
  const redis = new Redis(server.url)
  using producer = new TaskProducer({ url: server.url, names })
  using _ = { [Symbol.dispose]: () => redis.disconnect() }
  await using worker = startWorker(server.url, { ...plan, flags: [...plan.flags, ...through] })
  while ((await redis.xlen(names.health)) < plan.instances) await sleep(50) // all have started
  await Promise.all(dying.map((proxy) => proxy.stop()))
  const startedMs = performance.now()
  for (let i = 0; i < plan.tasks; i++) {
    const args = { board: `board-${i}`, site: site.urls[i % site.urls.length]!, pay: true }
    await producer.submit(TaskProducer.taskOf({ scraper_type: 'greenhouse', params: { args } }))
  }
  let rssMb = 0
  for (let done = 0; done < plan.tasks; ) {
    if (performance.now() - startedMs > TIMEOUT_MS) throw new Error(`only ${done} of ${plan.tasks} tasks were done`)
    await sleep(100)
    const results = await redis.xlen(names.results)
    done = results // every result of this size is one message
    if (done < plan.tasks / 3) continue
    rssMb = Math.max(
      rssMb,
      treeOf(worker.pid!).reduce((sum, pid) => sum + statusMb(pid, 'VmRSS'), 0),
    )
  }
  const minutes = (performance.now() - startedMs) / 60_000
  const entries = await redis.xrange(names.results, '-', '+')
  const results = entries.map(([, fields]) => JSON.parse(fields[1]!) as ResultMessage)
  return { minutes, rssMb: Math.round(rssMb), ...summary(results, minutes) }
}

function summary(results: readonly ResultMessage[], minutes: number) {
  const sum = (of: (result: ResultMessage) => number) => results.reduce((total, result) => total + of(result), 0)
  const requests = sum(({ metadata }) => metadata.requests_made)
  const jobs = sum(({ jobs_found }) => jobs_found)
  const by = (status: string) => results.filter((result) => result.status === status).length
  return {
    tasks: results.length,
    failed: by('failed') + by('timeout'),
    partial: by('partial'),
    errors: countBy(results.flatMap(({ error_code }) => error_code ?? [])),
    jobs,
    jobsPerMinute: Math.round(jobs / minutes),
    jobsPerHour: Math.round((jobs / minutes) * 60),
    failedPercent: Math.round(((by('failed') + by('timeout')) / results.length) * 1000) / 10,
    requests,
    pageSeconds:
      Math.round((sum(({ metadata }) => metadata.average_response_time * metadata.requests_made) / requests) * 1000) /
      1000,
  }
}

function countBy(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1
  return counts
}

const { values } = parseArgs({
  options: {
    'in-flight': { type: 'string', default: '64' },
    instances: { type: 'string', default: '4' },
    tasks: { type: 'string', default: '60' },
    jobs: { type: 'string', default: '40' },
    delay: { type: 'string', default: '500' },
    trouble: { type: 'string', default: '0.1' },
    proxies: { type: 'string', default: '12' },
    only: { type: 'string' },
    as: { type: 'string', default: 'threads' },
    flag: { type: 'string', multiple: true, default: [] },
    json: { type: 'boolean', default: false },
  },
})
const plan: Plan = {
  instances: 1,
  as: values.as as Plan['as'],
  inFlight: Number(values['in-flight']),
  tasks: Number(values.tasks),
  jobs: Number(values.jobs),
  delayMs: Number(values.delay),
  troubleShare: 0,
  proxies: 0,
  flags: values.flag,
}
const more = Number(values.instances)
type Figures = Awaited<ReturnType<typeof measure>>

const plans: Record<string, Plan> = {
  one: plan,
  several: { ...plan, instances: more, tasks: plan.tasks * 2 },
  system: { ...plan, instances: more, troubleShare: Number(values.trouble), proxies: Number(values.proxies) },
}
const figures: Record<string, Figures> = {}
for (const [name, one] of Object.entries(plans))
  if (values.only === undefined || values.only === name) figures[name] = await measure(one)
const { one, several } = figures
const instanceMb =
  one === undefined || several === undefined ? undefined : Math.round((several.rssMb - one.rssMb) / (more - 1))
if (values.json) console.log(JSON.stringify({ plan, ...figures, instanceMb }, null, 2))
else {
  console.log(`${plan.inFlight} requests in flight per instance, ${plan.delayMs} ms before each answer, ${plan.as}`)
  for (const [name, each] of Object.entries(figures))
    console.log(
      `${name.padEnd(8)} ${each.jobsPerMinute} jobs/min (${each.jobsPerHour}/h) · ${each.pageSeconds.toFixed(3)} s a page · ` +
        `${each.rssMb} MB · ${each.jobs} jobs of ${each.tasks} tasks, ${each.failed} failed (${each.failedPercent} %), ` +
        `${each.partial} partial ${JSON.stringify(each.errors)}`,
    )
  if (instanceMb !== undefined) console.log(`one more instance: ${instanceMb} MB of resident memory`)
}
