/**
 * Whether a stored run uses the queue of this process. Processes with different queues may share a store, and a queue that does
 * not know the run looks like one with nothing left, so every access to a run's queue goes through here.
 */
import { parseEngineUrl } from '../core/engine-url.ts'
import { ScrapeError } from '../core/errors.ts'
import type { RunRecord } from '../core/run.ts'
import type { Frontier } from '../frontier/contract.ts'
import { withoutPassword } from './run-identity.ts'

type RunQueue = Pick<RunRecord, 'id' | 'frontier'>

/**
 * Opens the queue of an existing run. `own` is the queue URL of this process; `open` must not create a run. Throws
 * `E_OTHER_QUEUE`, or `E_QUEUE_LOST` if the server is the right one but does not have the run. Machines may know a server by
 * different names, so if the run is found, the names do not matter.
 */
export async function openQueueOf(run: RunQueue, own: string, open: () => Promise<Frontier>): Promise<Frontier> {
  if (!isSameEngine(run.frontier, own)) throw otherQueue(run, own)
  try {
    return await open()
  } catch (error) {
    if (error instanceof ScrapeError && error.code === 'E_RUN_NOT_FOUND') throw missing(run, own)
    throw error
  }
}

/** The newest of the runs that uses this queue; throws `E_OTHER_QUEUE` if all use other queues. */
export function firstInQueue<T extends { record: RunQueue }>(runs: readonly T[], own: string): T | undefined {
  const found =
    runs.find(({ record }) => isSameQueue(record.frontier, own)) ??
    runs.find(({ record }) => isSameEngine(record.frontier, own))
  if (found === undefined && runs[0] !== undefined) throw otherQueue(runs[0].record, own)
  return found
}

/** Short enough for a table column. */
export function troubleText({ code, message }: ScrapeError): string {
  return code === 'E_OTHER_QUEUE' ? message.replace(/^run \S+ is /, '') : message
}

export const isQueueTrouble = (error: unknown): error is ScrapeError =>
  error instanceof ScrapeError && (error.code === 'E_OTHER_QUEUE' || error.code === 'E_QUEUE_LOST')

/** The same server, database or virtual host, by the same name. */
export function isSameQueue(a: string, b: string): boolean {
  const [one, other] = [placeOf(a), placeOf(b)]
  return one.engine === other.engine && one.host === other.host && one.path === other.path
}

/** A broker's virtual hosts are separate queues, even if they share a ledger. */
function isSameEngine(a: string, b: string): boolean {
  const [one, other] = [placeOf(a), placeOf(b)]
  return one.engine === other.engine && (one.engine !== 'amqp' || one.path === other.path)
}

const PORTS: Record<string, string> = { postgres: '5432', postgresql: '5432', redis: '6379', rediss: '6379', amqp: '5672', amqps: '5671' } // biome-ignore format: a table
const LOOPBACK = new Set(['', 'localhost', '127.0.0.1', '[::1]'])

function placeOf(text: string): { engine: string; host: string; path: string } {
  const url = URL.parse(text)
  const { scheme = text, engine = scheme } = parseEngineUrl(text)
  if (url === null) return { engine, host: '', path: text }
  const name = url.hostname.toLowerCase()
  const host = `${LOOPBACK.has(name) ? 'localhost' : name}:${url.port || (PORTS[scheme] ?? '')}`
  return { engine, host, path: pathOf(engine, url) }
}

/** With the default filled in. */
function pathOf(engine: string, { pathname, username }: URL): string {
  const path = decodeURIComponent(pathname).replace(/^\//, '')
  if (engine === 'redis') return path === '' ? '0' : path
  if (engine === 'amqp') return path === '' ? '/' : path
  return path === '' ? username : path
}

function otherQueue({ id, frontier }: RunQueue, own: string): ScrapeError {
  return new ScrapeError('E_OTHER_QUEUE', `run ${id} is in another queue: ${withoutPassword(frontier)}`, {
    notes: [`this process uses ${withoutPassword(own)}`],
  })
}

function missing(run: RunQueue, own: string): ScrapeError {
  return isSameQueue(run.frontier, own) ? lostQueue(run, own) : otherQueue(run, own)
}

function lostQueue({ id }: RunQueue, own: string): ScrapeError {
  const { engine } = placeOf(own)
  const place = withoutPassword(own)
  if (engine === 'postgres')
    return new ScrapeError('E_QUEUE_LOST', `the queue of run ${id} is gone: its rows in ${place} no longer exist`)
  const server = engine === 'amqp' ? `the Redis of ${place}` : `Redis at ${place}`
  return new ScrapeError('E_QUEUE_LOST', `the queue of run ${id} is gone: ${server} has lost its data`, {
    notes: engine === 'amqp' ? ['or this process uses another Redis than the run (--redis, SLUICE_REDIS)'] : [],
  })
}
