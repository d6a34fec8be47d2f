/** Subscriptions in the store. A secret is shown once, when it is created; it is stored because it is needed for signing. */
import { randomBytes } from 'node:crypto'
import { ScrapeError } from '../../core/errors.ts'
import type { Row, SqlDatabase } from '../../drivers/sql.ts'
import { EVENT_TYPES, type Mode, type NewSubscription, type Subscription } from './contract.ts'
import { isOfType } from './filter.ts'
import { newSecret } from './signature.ts'

/** Each one is checked against every event. */
const SUBSCRIPTIONS_MAX = 1000
/** How long a receiver has to switch to its new secret. */
const OLD_SECRET_MS = 24 * 3_600_000

export class Subscriptions {
  readonly #db: SqlDatabase
  readonly #prefix: string
  readonly #now: () => number

  constructor(db: SqlDatabase, now: () => number = Date.now) {
    this.#db = db
    this.#prefix = db.dialect.prefix
    this.#now = now
  }

  /** Throws `E_OPTION` for an invalid URL or event type, or a name that is already taken. */
  async create(given: NewSubscription): Promise<{ subscription: Subscription; secret: string }> {
    check(given)
    const secret = newSecret()
    const [count] = await this.#db.rows(`select count(*) as count from ${this.#prefix}webhook`, [])
    if (Number(count!['count']) >= SUBSCRIPTIONS_MAX)
      throw new ScrapeError('E_OPTION', `there are ${SUBSCRIPTIONS_MAX} webhooks already`)
    const [row] = await this.#db.rows(
      `insert into ${this.#prefix}webhook (id, name, url, events, filter, mode, is_active, secret, created_ms)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict do nothing returning *`,
      [randomBytes(6).toString('hex'), ...columnsOf(given), secret, this.#now()],
    )
    if (row === undefined) throw nameTaken(given.name)
    return { subscription: toSubscription(row), secret }
  }

  async list(): Promise<Subscription[]> {
    return (await this.#db.rows(`select * from ${this.#prefix}webhook order by name`, [])).map(toSubscription)
  }

  /** By id or name. Throws `E_WEBHOOK_NOT_FOUND`. */
  async get(word: string): Promise<Subscription> {
    const [row] = await this.#db.rows(`select * from ${this.#prefix}webhook where id = $1 or name = $1`, [word])
    if (row === undefined) throw notFound(word)
    return toSubscription(row)
  }

  /** When it is enabled again it starts afresh: dead deliveries can be redelivered. */
  async update(word: string, given: NewSubscription): Promise<Subscription> {
    check(given)
    const { id } = await this.get(word)
    const other = `select id from ${this.#prefix}webhook where name = $2 and id <> $1`
    if ((await this.#db.rows(other, [id, given.name])).length > 0) throw nameTaken(given.name)
    const [row] = await this.#db.rows(
      `update ${this.#prefix}webhook set name = $2, url = $3, events = $4, filter = $5, mode = $6, is_active = $7,
         disabled_reason = case when $7 = 1 then null else disabled_reason end,
         failing_since_ms = case when $7 = 1 then null else failing_since_ms end
       where id = $1 returning *`,
      [id, ...columnsOf(given)],
    )
    if (row === undefined) throw notFound(word)
    return toSubscription(row)
  }

  async remove(word: string): Promise<void> {
    const { id } = await this.get(word)
    await this.#db.transaction(async (rows) => {
      await rows(`delete from ${this.#prefix}delivery where webhook_id = $1`, [id])
      await rows(`delete from ${this.#prefix}digest_event where webhook_id = $1`, [id])
      await rows(`delete from ${this.#prefix}webhook where id = $1`, [id])
    })
  }

  /**
   * The old secret stays valid for a while, during which every delivery has two signatures. Throws `E_OPTION` while an earlier
   * old secret is still valid: there are at most two, and receivers that only know the oldest would be cut off. With no grace
   * period, that is intended: all old secrets expire at once.
   */
  async rotateSecret(word: string, graceMs = OLD_SECRET_MS): Promise<{ secret: string; oldUntilMs: number }> {
    const { id } = await this.get(word)
    const secret = newSecret()
    const nowMs = this.#now()
    const oldUntilMs = nowMs + graceMs
    const changed = await this.#db.rows(
      `update ${this.#prefix}webhook set old_secret = secret, old_secret_until_ms = $2, secret = $3
       where id = $1 and old_secret_until_ms <= $4 returning id`,
      [id, oldUntilMs, secret, graceMs > 0 ? nowMs : Number.MAX_SAFE_INTEGER],
    )
    if (changed.length === 0) throw await this.#stillReplacing(id, word)
    return { secret, oldUntilMs }
  }

  async #stillReplacing(id: string, word: string): Promise<ScrapeError> {
    const [row] = await this.#db.rows(`select old_secret_until_ms from ${this.#prefix}webhook where id = $1`, [id])
    if (row === undefined) return notFound(word)
    const until = new Date(Number(row['old_secret_until_ms'])).toISOString()
    return new ScrapeError('E_OPTION', `a secret of webhook ${JSON.stringify(word)} is being replaced already`, {
      fix: `Wait until ${until}, when the old one ends. To end all old ones at once: sluice webhook rotate ${JSON.stringify(word)} --grace 0s`,
    })
  }
}

function check({ url, events }: NewSubscription): void {
  const parsed = URL.parse(url)
  const isOdd = /[\s\p{Cc}]/u.test(url) || parsed?.username !== '' || parsed.password !== ''
  if (isOdd || !/^https?:$/.test(parsed.protocol))
    throw new ScrapeError('E_OPTION', `not a URL to deliver to: ${JSON.stringify(url.slice(0, 200))}`, {
      fix: 'Use https://HOST/PATH (or http://), without a login in it.',
    })
  const unknown = events.filter((pattern) => !EVENT_TYPES.some((type) => isOfType(type, pattern)))
  if (unknown.length > 0)
    throw new ScrapeError('E_OPTION', `no events are called ${unknown.join(', ')}`, {
      fix: `Use *, a group such as run.*, or some of: ${EVENT_TYPES.join(', ')}.`,
    })
}

const columnsOf = ({ name, url, events, filter, mode, isActive }: NewSubscription) => [
  name,
  url,
  JSON.stringify(events),
  JSON.stringify(filter),
  mode,
  isActive ? 1 : 0,
]

const nameTaken = (name: string) => new ScrapeError('E_OPTION', `there is a webhook named ${JSON.stringify(name)}`)
const notFound = (word: string) => new ScrapeError('E_WEBHOOK_NOT_FOUND', `no webhook ${JSON.stringify(word)}`)

function toSubscription(row: Row): Subscription {
  const { disabled_reason: reason, failing_since_ms: since } = row
  return {
    id: String(row['id']),
    name: String(row['name']),
    url: String(row['url']),
    events: JSON.parse(String(row['events'])),
    filter: JSON.parse(String(row['filter'])),
    mode: row['mode'] as Mode,
    isActive: Number(row['is_active']) === 1,
    createdAtMs: Number(row['created_ms']),
    disabledReason: reason === null ? undefined : String(reason),
    failingSinceMs: since === null ? undefined : Number(since),
  }
}
