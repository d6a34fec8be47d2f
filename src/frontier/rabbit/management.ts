/** Queue depths and rates from RabbitMQ's management API, for `stats` and `watch`. No run depends on it. */
import { Agent, fetch } from 'undici'
import { ScrapeError } from '../../core/errors.ts'
import { TLS_PARAMETERS, takeTls, tlsTrouble } from '../../core/server-tls.ts'
import { brokerUrl, portOf } from './address.ts'

interface BrokerQuestion {
  /** Default `/`. */
  vhost?: string
  /** Queue names as in RabbitMQ (see `names.ts`). */
  queues: readonly string[]
  /** Timeout for all of them together. Default 5,000. */
  timeoutMs?: number
  signal?: AbortSignal
}

/** From the broker's latest statistics, which are collected every 5 s: a younger queue has only zeros. */
interface QueueReading {
  readonly name: string
  /** False: the broker has no such queue (its run is over, or has not started). The numbers are then 0. */
  readonly isThere: boolean
  /** Messages waiting in the broker. */
  readonly ready: number
  /** Delivered but not acknowledged yet. */
  readonly unacked: number
  readonly consumers: number
  /** Per second, over the broker's last 15 s. */
  readonly publishRate: number
  readonly deliverRate: number
  readonly ackRate: number
}

const TIMEOUT_MS = 5000
const ASKED_AT_ONCE = 8
/** Per queue; with the columns we request it is below one KiB. */
const ANSWER_BYTES_MAX = 256 * 1024
const COLUMNS = 'messages_ready,messages_unacknowledged,consumers,message_stats'
/**
 * Counts at every 5 s of the last 15. The plain "rate" is that of the last moment: at a steady 150 messages a second, a broker
 * that collects its statistics every second reported 0 two times out of three.
 */
const SAMPLES = 'msg_rates_age=15&msg_rates_incr=5'
/** RabbitMQ's default ports are 5672 and 15672, or 5671 and 15671 with TLS. */
const PORT_OFFSET = 10_000

/** In the order of the question. Throws `E_SERVICE` if the API is unreachable, `E_OPTION` if the URL is invalid. */
export async function readBroker(managementUrl: string, question: BrokerQuestion): Promise<QueueReading[]> {
  await using api = new Api(managementUrl)
  const { vhost = '/', queues, timeoutMs = TIMEOUT_MS, signal } = question
  const deadline = AbortSignal.timeout(timeoutMs)
  const until = signal === undefined ? deadline : AbortSignal.any([signal, deadline])
  const ask = async (name: string) => {
    const path = `/api/queues/${encodeURIComponent(vhost)}/${encodeURIComponent(name)}?columns=${COLUMNS}&${SAMPLES}`
    return toReading(name, await api.get(path, until))
  }
  const readings: QueueReading[] = []
  for (let from = 0; from < queues.length; from += ASKED_AT_ONCE)
    readings.push(...(await Promise.all(queues.slice(from, from + ASKED_AT_ONCE).map(ask))))
  return readings
}

/** The default location of a broker's API: `amqp://user:password@host:5672/vhost` → `http://…:15672`. */
export function managementOf(amqpUrl: string): { url: string; vhost: string } {
  const parsed = brokerUrl(amqpUrl)
  const isTls = parsed.protocol === 'amqps:'
  const { username, password, hostname, pathname } = parsed
  const user = username === '' ? 'guest:guest' : `${username}:${password}`
  const apiPort = portOf(parsed) + PORT_OFFSET
  const url = `${isTls ? 'https' : 'http'}://${user}@${hostname || 'localhost'}:${apiPort}`
  const tls = new URLSearchParams([...parsed.searchParams].filter(([name]) => isTlsParameter(name)))
  const options = tls.size > 0 ? `/?${tls}` : ''
  return { url: `${url}${options}`, vhost: decodeURIComponent(pathname.slice(1)) || '/' }
}

const isTlsParameter = (name: string) => (TLS_PARAMETERS as readonly string[]).includes(name)

class Api implements AsyncDisposable {
  /** `host:port`, never with user or password. */
  readonly #place: string
  readonly #base: string
  readonly #headers: Record<string, string>
  readonly #agent: Agent

  constructor(url: string) {
    const parsed = URL.parse(url)
    if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
      throw new ScrapeError('E_OPTION', 'the URL of RabbitMQ’s management API is not one', {
        fix: 'For example http://user:password@localhost:15672',
      })
    }
    const { protocol, host, pathname, username, password } = parsed
    const tls = takeTls(parsed, protocol === 'https:')
    this.#agent = new Agent(tls === undefined ? {} : { connect: tls })
    this.#place = host
    this.#base = `${protocol}//${host}${pathname.replace(/\/+$/, '')}`
    const user = username === '' ? 'guest:guest' : `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
    this.#headers = { authorization: `Basic ${Buffer.from(user).toString('base64')}` }
  }

  /** Undefined: not found. */
  async get(path: string, signal: AbortSignal): Promise<Record<string, unknown> | undefined> {
    try {
      const response = await fetch(`${this.#base}${path}`, {
        headers: this.#headers,
        signal,
        redirect: 'error',
        dispatcher: this.#agent,
      })
      const text = await readText(response)
      if (response.status === 404) return undefined
      if (response.status === 401 || response.status === 403) throw this.#refused(response.status)
      if (!response.ok) throw this.#strange(`it answers with status ${response.status}`)
      return this.#parse(text)
    } catch (error) {
      throw error instanceof ScrapeError ? error : this.#unreachable(error)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy()
  }

  #parse(text: string | undefined): Record<string, unknown> {
    if (text === undefined) throw this.#strange(`its answer is larger than ${ANSWER_BYTES_MAX} bytes`)
    try {
      const answer: unknown = JSON.parse(text)
      if (isRecord(answer)) return answer
      if (Array.isArray(answer) && answer.length === 0) return {} // an empty object, as Erlang writes it
    } catch {
      // reported below
    }
    throw this.#strange('its answer is not the JSON of a queue')
  }

  #refused(status: number): ScrapeError {
    return new ScrapeError('E_SERVICE', `RabbitMQ’s management API at ${this.#place} refuses (${status})`, {
      fix: 'Check user and password of its URL; the user needs the tag "monitoring" and rights on the virtual host.',
    })
  }

  #strange(why: string): ScrapeError {
    return new ScrapeError('E_SERVICE', `${this.#place} is not RabbitMQ’s management API, or it is ill: ${why}`, {
      fix: 'Check the URL; the API listens on 15672 by default, not on 5672.',
    })
  }

  #unreachable(error: unknown): unknown {
    const { name, message, cause } = error as Error
    if (name === 'AbortError') return error // the caller aborted
    const badTls = tlsTrouble(cause ?? error, `RabbitMQ’s management API at ${this.#place}`, 'cacert')
    if (badTls !== undefined) return badTls
    const reason = name === 'TimeoutError' ? 'no answer in time' : cause instanceof Error ? cause.message : message
    return new ScrapeError('E_SERVICE', `RabbitMQ’s management API at ${this.#place} cannot be asked: ${reason}`, {
      cause: error,
      fix: 'Switch it on with: rabbitmq-plugins enable rabbitmq_management',
    })
  }
}

/** Undefined if it is too long. */
async function readText(response: Pick<Response, 'body'>): Promise<string | undefined> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > ANSWER_BYTES_MAX) return undefined // leaving the loop cancels the rest
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** Fields are missing until something has happened in the queue and its first statistics exist. */
function toReading(name: string, queue: Record<string, unknown> | undefined): QueueReading {
  const stats = isRecord(queue?.['message_stats']) ? queue['message_stats'] : {}
  const rate = (kind: string) => {
    const details = stats[`${kind}_details`]
    return isRecord(details) ? rateOf(details) : 0
  }
  return {
    name,
    isThere: queue !== undefined,
    ready: toNumber(queue?.['messages_ready']),
    unacked: toNumber(queue?.['messages_unacknowledged']),
    consumers: toNumber(queue?.['consumers']),
    publishRate: rate('publish'),
    deliverRate: rate('deliver_get'),
    ackRate: rate('ack'),
  }
}

/** Measured from the queue's first message if it is within the samples: earlier zeros would only dilute the rate. */
function rateOf({ samples, rate }: Record<string, unknown>): number {
  const counts = (Array.isArray(samples) ? samples : [])
    .filter(isRecord)
    .map(({ sample, timestamp }) => ({ count: toNumber(sample), atMs: toNumber(timestamp) }))
    .sort((a, b) => a.atMs - b.atMs)
  const first = counts.findIndex(({ count }) => count > 0)
  const from = counts[Math.max(0, first - 1)]
  const to = counts.at(-1)
  if (from === undefined || to === undefined || to.atMs <= from.atMs) return toNumber(rate)
  return Math.max(0, to.count - from.count) / ((to.atMs - from.atMs) / 1000)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function toNumber(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0
}
