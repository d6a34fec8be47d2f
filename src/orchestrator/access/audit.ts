/** Who did what through the API. Reading is not written down. */
import type { SqlDatabase } from '../store/sql.ts'

export interface AuditEntry {
  caller: string
  role: string
  /** `POST /v1/runs` */
  action: string
  /** What was asked, cut; never a secret. */
  detail: string
  status: number
}

const DETAIL_CHARS_MAX = 2000

export class Audit {
  readonly #db: SqlDatabase

  constructor(db: SqlDatabase) {
    this.#db = db
  }

  async add({ caller, role, action, detail, status }: AuditEntry): Promise<void> {
    await this.#db.rows(
      `insert into ${this.#db.dialect.prefix}audit (caller, role, action, detail, status) values ($1, $2, $3, $4, $5)`,
      [caller, role, action, detail.slice(0, DETAIL_CHARS_MAX), status],
    )
  }

  /** Newest first. */
  async list(limit: number): Promise<(AuditEntry & { id: number; atMs: number })[]> {
    const rows = await this.#db.rows(`select * from ${this.#db.dialect.prefix}audit order by id desc limit $1`, [limit])
    return rows.map((row) => ({
      id: Number(row['id']),
      atMs: Number(row['at_ms']),
      caller: String(row['caller']),
      role: String(row['role']),
      action: String(row['action']),
      detail: String(row['detail']),
      status: Number(row['status']),
    }))
  }
}
