/** API keys: kept as hashes, each with a role. The key itself is shown once, when it is made. */
import { createHash, randomBytes } from 'node:crypto'
import { ScrapeError } from '../../core/errors.ts'
import type { Role } from '../../core/role.ts'
import type { Row, SqlDatabase } from '../store/sql.ts'

export interface ApiKey {
  id: string
  name: string
  role: Role
  createdAtMs: number
  usedAtMs: number | undefined
  isRevoked: boolean
}

/** How often the time of last use is written down: not for every request. */
const USED_EVERY_MS = 60_000

export class ApiKeys {
  readonly #db: SqlDatabase

  constructor(db: SqlDatabase) {
    this.#db = db
  }

  /** Throws `E_OPTION` when the name is taken. */
  async create(name: string, role: Role): Promise<{ key: string; id: string }> {
    const key = `slk_${randomBytes(24).toString('base64url')}`
    const id = randomBytes(6).toString('hex')
    const added = await this.#db.rows(
      `insert into ${this.#db.dialect.prefix}api_key (id, name, hash, role) values ($1, $2, $3, $4)
       on conflict do nothing returning id`,
      [id, name, hashOf(key), role],
    )
    if (added.length === 0)
      throw new ScrapeError('E_OPTION', `there is a key named ${JSON.stringify(name)}`, {
        fix: 'Choose another name, or revoke that one.',
      })
    return { key, id }
  }

  /** By hash: what is compared says nothing about the key. Undefined when there is no such key, or it was revoked. */
  async find(key: string): Promise<ApiKey | undefined> {
    const { prefix, now } = this.#db.dialect
    const [found] = await this.#db.rows(`select * from ${prefix}api_key where hash = $1 and revoked_ms is null`, [
      hashOf(key),
    ])
    if (found === undefined) return undefined
    const known = toKey(found)
    if (Date.now() - (known.usedAtMs ?? 0) > USED_EVERY_MS)
      await this.#db.rows(`update ${prefix}api_key set used_ms = ${now} where id = $1`, [known.id])
    return known
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

const hashOf = (key: string) => createHash('sha256').update(key).digest('hex')

function toKey(row: Row): ApiKey {
  return {
    id: String(row['id']),
    name: String(row['name']),
    role: row['role'] as Role,
    createdAtMs: Number(row['created_ms']),
    usedAtMs: row['used_ms'] === null ? undefined : Number(row['used_ms']),
    isRevoked: row['revoked_ms'] !== null,
  }
}
