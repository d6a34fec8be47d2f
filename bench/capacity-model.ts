/**
 * The arithmetic of docs/capacity.md: from this project's measurements and a reader's assumptions to machines, bytes and money.
 */

export const ENGINES = ['memory', 'sqlite', 'postgres', 'amqp', 'redis'] as const
export type Engine = (typeof ENGINES)[number]

/** Measured on two cores of a virtual machine; docs/capacity.md names the command for each. */
export const MEASURED = {
  /** A crawl of product pages, one process, SQLite queue, two output files: CPU per page, and the maximum pages per second. */
  workerCpuMsPerPage: 0.42,
  processPagesPerS: 2700,
  workerBytes: 147e6,
  /** CPU of the queue's server to add, claim and settle a task. In-process engines are included in the worker's figure. */
  serverCpuMsPerPage: { memory: 0, sqlite: 0, postgres: 0.035, amqp: 0.079, redis: 0.079 },
  /** Tasks per second, claimed and settled by one process: the slowest measurement. */
  queueTasksPerS: { memory: 103_000, sqlite: 103_000, postgres: 20_500, amqp: 5200, redis: 14_500 },
  bytesPerTaskPending: { memory: 399, sqlite: 171, postgres: 358, amqp: 256, redis: 256 },
  bytesPerTaskDone: { memory: 127, sqlite: 42, postgres: 414, amqp: 23, redis: 23 },
  /** What an item takes besides its JSON: key, hashes and indexes if a database keeps it, else only its key. */
  bytesPerItemBesideJson: { memory: 123, sqlite: 68, postgres: 292, amqp: 292, redis: 292 },
  /** The index in which PostgreSQL looks up every added URL. */
  seenIndexBytesPerUrl: 76,
  /** With more URLs in one run, Redis unpacks its small hashes, and a URL takes several times 23 bytes. */
  urlsPerRedisRun: 8e6,
  connectionsPerWorker: 8,
}

/** What the reader knows better than we do. Prices are per month, in any currency. */
export const ASSUMED = {
  pages: 1e9,
  days: 30,
  /** Share of the time in which pages are fetched at full rate: the rest is nights, deploys, sites that pause us. */
  utilisation: 0.5,
  /** Over the wire, compressed. */
  pageBytes: 20_000,
  /** From the request to the last byte. */
  latencyMs: 500,
  inFlightPerWorker: 64,
  /** Requests per second to a host: the default is 10; many owners want less. */
  rpsPerHost: 1,
  itemsPerPage: 1,
  itemBytes: 400,
  /** The largest share of all pages that are waiting at one time. */
  pendingShare: 0.2,
  pricePerCore: 25,
  pricePerGbMemory: 4,
  pricePerGbDisk: 0.1,
  pricePerGbNetwork: 0.01,
}
export type Assumptions = typeof ASSUMED

export interface Plan {
  engine: Engine
  pagesPerS: number
  /** The minimum: each of them gets `rpsPerHost` requests per second all the time. */
  hostsAtOnce: number
  workers: number
  workerCores: number
  workerMemoryBytes: number
  /** For the queue's server; for `amqp` its Redis, for `redis` Redis itself. */
  serverCores: number
  serverMemoryBytes: number
  /** Runs to divide the pages into, so that no part of the engine is used beyond what was measured. */
  runs: number
  /** Tasks per second as a share of the measured maximum of one queue of this engine. */
  queueShare: number
  diskBytes: number
  networkBytes: number
  connections: number
  costPerMonth: number
  /** Known problems with this plan, worst first. */
  limits: string[]
}

const GB = 1e9
const SECONDS_PER_DAY = 86_400
/** A process has one thread for JavaScript; part of its core goes to the system and to garbage collection. */
const CORE_SHARE_MAX = 0.7

export function planFor(engine: Engine, given: Partial<Assumptions> = {}): Plan {
  const input = { ...ASSUMED, ...given }
  const pagesPerS = input.pages / (input.days * SECONDS_PER_DAY) / input.utilisation
  const workers = workersFor(pagesPerS, input)
  const workerCores = (pagesPerS * MEASURED.workerCpuMsPerPage) / 1000
  const serverCores = (pagesPerS * MEASURED.serverCpuMsPerPage[engine]) / 1000
  const runs = isOnRedis(engine) ? Math.ceil(input.pages / MEASURED.urlsPerRedisRun) : 1
  const queue = queueBytes(engine, input)
  const items = itemBytesOnDisk(engine, input)
  const networkBytes = input.pages * input.pageBytes
  const plan = {
    engine,
    pagesPerS,
    hostsAtOnce: Math.ceil(pagesPerS / input.rpsPerHost),
    workers,
    workerCores,
    workerMemoryBytes: workers * MEASURED.workerBytes + (engine === 'memory' ? queue : 0),
    serverCores,
    serverMemoryBytes: isOnRedis(engine)
      ? queue
      : engine === 'postgres'
        ? input.pages * MEASURED.seenIndexBytesPerUrl
        : 0,
    runs,
    queueShare: pagesPerS / MEASURED.queueTasksPerS[engine],
    diskBytes: items + (engine === 'memory' ? 0 : queue), // Redis also writes its memory to a file
    networkBytes,
    connections: engine === 'postgres' ? workers * MEASURED.connectionsPerWorker : 0,
  }
  return { ...plan, costPerMonth: costOf(plan, input), limits: limitsOf(plan) }
}

/** The larger of the numbers required by CPU and by requests in flight. */
function workersFor(pagesPerS: number, { latencyMs, inFlightPerWorker }: Assumptions): number {
  const byCpu = (pagesPerS * MEASURED.workerCpuMsPerPage) / 1000 / CORE_SHARE_MAX
  const byWaiting = (pagesPerS * latencyMs) / 1000 / inFlightPerWorker
  return Math.max(1, Math.ceil(Math.max(byCpu, byWaiting)))
}

const isOnRedis = (engine: Engine) => engine === 'redis' || engine === 'amqp'

/**
 * Everything kept until the end, plus the maximum waiting. Keys of a finished run expire in Redis after a week; here all count.
 */
function queueBytes(engine: Engine, { pages, pendingShare, itemsPerPage }: Assumptions): number {
  const pending = pages * pendingShare * MEASURED.bytesPerTaskPending[engine]
  const keys = isInFiles(engine) ? pages * itemsPerPage * MEASURED.bytesPerItemBesideJson[engine] : 0
  return pending + pages * MEASURED.bytesPerTaskDone[engine] + keys
}

const isInFiles = (engine: Engine) => engine === 'memory' || engine === 'sqlite'

/** In files items take their own size, twice with CSV and JSON Lines; in a database each has a row and two index entries. */
function itemBytesOnDisk(engine: Engine, { pages, itemsPerPage, itemBytes }: Assumptions): number {
  const perItem = isInFiles(engine) ? 2 * itemBytes : itemBytes + MEASURED.bytesPerItemBesideJson[engine]
  return pages * itemsPerPage * perItem
}

type Costs = Pick<
  Plan,
  'workerCores' | 'serverCores' | 'workers' | 'workerMemoryBytes' | 'serverMemoryBytes' | 'diskBytes' | 'networkBytes'
>

function costOf(plan: Costs, input: Assumptions): number {
  const cores = Math.max(plan.workerCores, plan.workers * 0.1) + plan.serverCores
  const month = 30 / input.days // disk and machines are paid per month, bytes once
  return (
    cores * input.pricePerCore +
    ((plan.workerMemoryBytes + plan.serverMemoryBytes) / GB) * input.pricePerGbMemory +
    (plan.diskBytes / GB) * input.pricePerGbDisk +
    (plan.networkBytes / GB) * input.pricePerGbNetwork * month
  )
}

function limitsOf(plan: Omit<Plan, 'costPerMonth' | 'limits'>): string[] {
  const isOneMachine = isInFiles(plan.engine)
  const found = [
    plan.engine === 'memory' && 'ends with its process, and nothing is resumed',
    plan.engine === 'memory' && plan.workers > 1 && `${plan.workers} workers, where there can be one`,
    plan.workerMemoryBytes > 64 * GB && isOneMachine && `${Math.round(plan.workerMemoryBytes / GB)} GB in one machine`,
    isOneMachine && plan.workers > 16 && `${plan.workers} processes on one machine`,
    plan.queueShare > 0.5 && `queue at ${Math.round(plan.queueShare * 100)} % of what one was measured to do`,
    isOnRedis(plan.engine) && plan.serverCores > 0.5 && 'more than half a core of one Redis, which has one thread',
    plan.serverMemoryBytes > 64 * GB && `${Math.round(plan.serverMemoryBytes / GB)} GB of memory in one server`,
    plan.diskBytes > 2000 * GB && `${Math.round(plan.diskBytes / GB)} GB of disk in one database`,
    plan.connections > 100 && `${plan.connections} connections: put a pooler in between`,
  ]
  return found.filter((entry) => entry !== false)
}
