/** A connection to a PostgreSQL server: a small pool, calls that wait out an outage, and errors in our own words. */
import type { Pool } from 'pg'
import { ScrapeError } from '../../core/errors.ts'
import { tlsTrouble } from '../../core/server-tls.ts'
import { type Outage, OutageWait } from '../outage.ts'
import { pg } from './client.ts'
import { codeOf, isConflict, isOutage } from './outage.ts'
import { goPlain, noUrl, type PostgresTls, postgresTls } from './tls.ts'

export interface DatabaseOptions {
  /** Connections of this process. Default 4. */
  connectionsMax?: number
  /** How long an operation waits for an unreachable server before it fails. Default 60,000; 0: not at all. */
  outageMs?: number
  /** An answer that takes longer counts as an outage: the connection is dropped and the call repeated. Default 60,000. */
  queryMsMax?: number
  /** Called before each wait, for logging. */
  onOutage?: (info: Outage) => void
}

/** SQLSTATE our own functions raise when a run was dropped under its workers. */
export const RUN_GONE = 'SL404'

const CONNECT_MS_MAX = 5000
const CONFLICTS_MAX = 10

/** Everything stays text: we know our columns, and parsing by type would cost more than everything else in a claim. */
const AS_TEXT = { getTypeParser: () => (text: string) => text }

/** Values may differ for a repeat: it is unknown whether the first call was executed. */
type Values = unknown[] | ((isRepeat: boolean) => unknown[])

export class Database {
  readonly pool: Pool
  /** `host:port/database`, never with user or password. */
  readonly place: string
  readonly #tls: PostgresTls
  readonly #outageMs: number
  readonly #onOutage: (info: Outage) => void
  readonly #closing = new AbortController()
  #isOpen = false
  #outageAtMs = Number.NEGATIVE_INFINITY

  constructor(url: string, options: DatabaseOptions = {}) {
    const { connectionsMax = 4, outageMs = 60_000, queryMsMax = 60_000, onOutage = () => {} } = options
    this.place = placeOf(url)
    this.#outageMs = outageMs
    this.#onOutage = onOutage
    this.#tls = postgresTls(url)
    const { connectionString, ssl } = this.#tls
    this.pool = new pg.Pool({
      connectionString,
      ssl,
      sslnegotiation: 'postgres', // otherwise PGSSLNEGOTIATION would decide
      max: connectionsMax,
      connectionTimeoutMillis: CONNECT_MS_MAX,
      query_timeout: queryMsMax,
      keepAlive: true,
      application_name: 'sluice',
    })
    this.pool.on('error', () => {}) // an idle connection broke; the next call opens another
  }

  /** The rows of one statement, as arrays of text. Repeated after an outage: it must be safe to execute twice. */
  rows<R extends unknown[]>(text: string, values: Values): Promise<R[]> {
    return this.attempt(async (isRepeat) => {
      const given = typeof values === 'function' ? values(isRepeat) : values
      return (await this.pool.query({ text, values: given, rowMode: 'array', types: AS_TEXT })).rows as R[]
    })
  }

  /** Runs `body` until it succeeds: retries at once after a conflict, and after a wait while the server is down. */
  async attempt<T>(body: (isRepeat: boolean) => Promise<T>): Promise<T> {
    const wait = new OutageWait({ outageMs: this.#outageMs, wasOpen: this.#isOpen, signal: this.#closing.signal })
    for (let conflicts = 0; ; ) {
      try {
        const result = await body(wait.isRepeat)
        this.#isOpen = true
        return result
      } catch (error) {
        if (isConflict(error) && conflicts++ < CONFLICTS_MAX) continue
        if (goPlain(this.pool, this.#tls, error)) continue
        if (!isOutage(error)) throw this.#named(error)
        this.#outageAtMs = performance.now()
        if (!(await wait.next(error as Error, this.#onOutage))) throw this.#named(error)
      }
    }
  }

  /** Time since the server was last unreachable; infinite if it never was. */
  get msSinceOutage(): number {
    return performance.now() - this.#outageAtMs
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort()
    await this.pool.end()
  }

  #named(error: unknown): unknown {
    if (error instanceof ScrapeError) return error
    const code = codeOf(error)
    if (code === RUN_GONE || code === '23514') {
      return new ScrapeError('E_RUN_NOT_FOUND', `the run is no longer in ${this.place}: it was dropped`, {
        cause: error,
      })
    }
    const badTls = tlsTrouble(error, this.place, 'sslrootcert')
    if (badTls !== undefined) return badTls
    const reason = reasonOf(error)
    if (isOutage(error))
      return new ScrapeError('E_SERVICE', `${this.place} is unreachable: ${reason}`, { cause: error })
    // Wrong password, no such role or database, no permission, full disk: a person has to fix it.
    if (/^(?:28...|3D000|42501|53...)$/.test(code)) {
      return new ScrapeError('E_SERVICE', `${this.place} refuses: ${reason}`, {
        cause: error,
        fix: /no encryption/.test(reason)
          ? 'It takes no plain connections from here: add sslmode=verify-full&sslrootcert=FILE to the URL.'
          : /client certificate/.test(reason)
            ? 'It wants a client certificate: add sslcert=FILE&sslkey=FILE to the URL.'
            : 'Check the URL of the database and the rights of its user.',
      })
    }
    return error
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ')
  return error instanceof Error ? error.message : String(error)
}

function placeOf(url: string): string {
  const parsed = URL.parse(url)
  if (parsed === null || !/^postgres(?:ql)?:$/.test(parsed.protocol)) throw noUrl()
  if (url.split('@').length > 2)
    // the part before the first @ would be taken for the whole login, and the rest would be displayed
    throw new ScrapeError('E_OPTION', 'the user or password in the URL of the database has an @ in it', {
      fix: 'Write such characters as percent codes: %40 for @, %2F for /, %3A for a colon.',
    })
  const { hostname, port, pathname } = parsed
  return `${hostname || 'localhost'}:${port || 5432}${pathname}`
}
