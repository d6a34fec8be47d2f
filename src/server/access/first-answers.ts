/** First answers by idempotency key, kept for a day: a repeat gets the first answer, whichever server it reaches. */
import type { SqlDatabase } from '../../drivers/sql.ts'

interface Answer {
  status: number
  body: string
}

const KEPT_MS = 86_400_000
/** A first request that has not finished by then died with its server. */
const BUSY_MS_MAX = 120_000
const CLEAN_ONE_IN = 200

export class FirstAnswers {
  readonly #db: SqlDatabase

  constructor(db: SqlDatabase) {
    this.#db = db
  }

  /** Undefined: this is the first request, so proceed. busy: the first is running · other: the key belongs to another request. */
  async begin(key: string, fingerprint: string): Promise<Answer | 'busy' | 'other' | undefined> {
    const { prefix, now } = this.#db.dialect
    if (Math.random() * CLEAN_ONE_IN < 1)
      await this.#db.rows(`delete from ${prefix}first_answer where begun_ms < ${now} - ${KEPT_MS}`, [])
    const begun = await this.#db.rows(
      `insert into ${prefix}first_answer as mine (key, fingerprint) values ($1, $2)
       on conflict (key) do update set fingerprint = excluded.fingerprint, begun_ms = ${now}, status = null, body = null
       where mine.begun_ms < ${now} - ${KEPT_MS} or (mine.status is null and mine.begun_ms < ${now} - ${BUSY_MS_MAX})
       returning key`,
      [key, fingerprint],
    )
    if (begun.length > 0) return undefined
    const [first] = await this.#db.rows(`select fingerprint, status, body from ${prefix}first_answer where key = $1`, [
      key,
    ])
    if (first === undefined) return 'busy' // the first request has just failed
    if (first['fingerprint'] !== fingerprint) return 'other'
    if (first['status'] === null) return 'busy'
    return { status: Number(first['status']), body: String(first['body']) }
  }

  /** Without an answer, the first request failed and a repeat may try again. */
  async end(key: string, answer: Answer | undefined): Promise<void> {
    const { prefix } = this.#db.dialect
    if (answer === undefined) await this.#db.rows(`delete from ${prefix}first_answer where key = $1`, [key])
    else
      await this.#db.rows(`update ${prefix}first_answer set status = $2, body = $3 where key = $1`, [
        key,
        answer.status,
        answer.body,
      ])
  }
}
