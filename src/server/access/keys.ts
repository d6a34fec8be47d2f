/**
 * API keys: kept as hashes, each with a role. The key itself is shown once, when it is created.
 *
 *   created ──rotate──▶ superseded (works until its grace ends) ──▶ expired
 *      └──revoke──▶ revoked
 */
import { createHash, randomBytes } from 'node:crypto'
import { ScrapeError } from '../../core/errors.ts'
import type { Role } from '../../core/role.ts'
import type { Row, SqlDatabase } from '../../drivers/sql.ts'

export interface ApiKey {
  id: string
  name: string
  role: Role
  createdAtMs: number
  usedAtMs: number | undefined
  /** The key is refused from this time on. */
  expiresAtMs: number | undefined
  /** The key that replaced it. */
  successorId: string | undefined
  isRevoked: boolean
}

interface NewKey {
  key: string
  id: string
}

export class ApiKeys {
  readonly #db: SqlDatabase

  constructor(db: SqlDatabase) {
    this.#db = db
  }

  /**
   * `lifeMs`: how long until it expires; infinite or omitted: never. The name of an expired or revoked key can be reused: that
   * key then gets this one as its successor. Throws `E_OPTION` if a key in use has the name.
   */
  async create(name: string, role: Role, { lifeMs }: { lifeMs?: number | undefined } = {}): Promise<NewKey> {
    const { prefix, now } = this.#db.dialect
    const made = newKey()
    await this.#db.transaction(async (rows) => {
      await rows(
        `update ${prefix}api_key set successor_id = $2
         where name = $1 and successor_id is null and not (${inUse(now)})`,
        [name, made.id],
      )
      const added = await rows(
        `insert into ${prefix}api_key (id, name, hash, role, expires_ms)
         select $1, $2, $3, $4, ${now} + ${wholeMs(lifeMs)}
         where not exists (select 1 from ${prefix}api_key where name = $2 and ${inUse(now)})
         on conflict do nothing returning id`,
        [made.id, name, hashOfKey(made.key), role],
      )
      if (added.length === 0) throw nameTaken(name)
    })
    return made
  }

  /**
   * Creates a successor with the same name and role. It gets the lifetime the old key was created with, unless `lifeMs` says
   * otherwise (infinite: never expires). The old key keeps working for `graceMs`, or until it would have expired anyway.
   * Undefined if no such key is in use, or it already has a successor.
   */
  async rotate(
    id: string,
    { graceMs, lifeMs }: { graceMs: number; lifeMs?: number | undefined },
  ): Promise<(NewKey & Pick<ApiKey, 'name' | 'role'> & { oldUntilMs: number }) | undefined> {
    const { prefix, now } = this.#db.dialect
    const made = newKey()
    return await this.#db.transaction(async (rows) => {
      const untilMs = `${now} + ${wholeMs(graceMs)}`
      const [before] = await rows(`select * from ${prefix}api_key where id = $1`, [id])
      const [old] = await rows(
        `update ${prefix}api_key set successor_id = $2,
           expires_ms = case when expires_ms < ${untilMs} then expires_ms else ${untilMs} end
         where id = $1 and successor_id is null and ${inUse(now)}
         returning *`,
        [id, made.id],
      )
      if (before === undefined || old === undefined) return undefined
      const { name, role, expiresAtMs } = toKey(old)
      await rows(
        `insert into ${prefix}api_key (id, name, hash, role, expires_ms) values ($1, $2, $3, $4, ${now} + ${wholeMs(lifeMs ?? lifeMsOf(toKey(before)))})`,
        [made.id, name, hashOfKey(made.key), role],
      )
      return { ...made, name, role, oldUntilMs: expiresAtMs! }
    })
  }

  /** The keys that are valid now, by `hashOfKey`: the compared values reveal nothing about the keys. */
  async inUse(): Promise<ReadonlyMap<string, ApiKey>> {
    const { prefix, now } = this.#db.dialect
    const found = await this.#db.rows(`select * from ${prefix}api_key where ${inUse(now)}`, [])
    return new Map(found.map((row) => [String(row['hash']), toKey(row)]))
  }

  /** True once a key has been created, even if all keys were revoked or have expired. */
  async haveExisted(): Promise<boolean> {
    return (await this.#db.rows(`select 1 as one from ${this.#db.dialect.prefix}api_key limit 1`, [])).length > 0
  }

  /** Records that the key has just been used. */
  async markUsed(id: string): Promise<void> {
    const { prefix, now } = this.#db.dialect
    await this.#db.rows(`update ${prefix}api_key set used_ms = ${now} where id = $1`, [id])
  }

  async list(): Promise<ApiKey[]> {
    return (await this.#db.rows(`select * from ${this.#db.dialect.prefix}api_key order by created_ms, id`, [])).map(
      toKey,
    )
  }

  /** False when there is no such key. */
  async revoke(id: string): Promise<boolean> {
    const { prefix, now } = this.#db.dialect
    const changed = await this.#db.rows(
      `update ${prefix}api_key set revoked_ms = ${now} where id = $1 and revoked_ms is null returning id`,
      [id],
    )
    return changed.length > 0
  }
}

function newKey(): NewKey {
  return { key: `slk_${randomBytes(24).toString('base64url')}`, id: randomBytes(6).toString('hex') }
}

/** SQL condition for a key that may be used now. */
const inUse = (now: string) => `revoked_ms is null and (expires_ms is null or expires_ms > ${now})`

const nameTaken = (name: string) =>
  new ScrapeError('E_OPTION', `there is a key named ${JSON.stringify(name)}`, {
    fix: 'Choose another name, or replace that one with `sluice key rotate ID`; one that was replaced keeps its name until its grace is over, or it is revoked.',
  })

const lifeMsOf = ({ createdAtMs, expiresAtMs }: ApiKey) =>
  expiresAtMs === undefined ? undefined : expiresAtMs - createdAtMs

/** Inlined into the SQL: the two databases disagree on the type of a parameter in a sum. */
const wholeMs = (ms: number | undefined) =>
  ms === undefined || ms === Number.POSITIVE_INFINITY ? 'null' : String(Math.round(ms))

/** What is stored instead of the key. */
export const hashOfKey = (key: string) => createHash('sha256').update(key).digest('hex')

const numberOf = (value: Row[string] | undefined) => (value === null || value === undefined ? undefined : Number(value))

function toKey(row: Row): ApiKey {
  const { successor_id: successor } = row
  return {
    id: String(row['id']),
    name: String(row['name']),
    role: row['role'] as Role,
    createdAtMs: Number(row['created_ms']),
    usedAtMs: numberOf(row['used_ms']),
    expiresAtMs: numberOf(row['expires_ms']),
    successorId: successor === null || successor === undefined ? undefined : String(successor),
    isRevoked: row['revoked_ms'] !== null,
  }
}
