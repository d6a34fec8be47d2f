/** The audit log: who did what through the API, from where, and the result; and who was refused. Reads are not logged. */
import type { Row, SqlDatabase } from '../../drivers/sql.ts'

export interface AuditEntry {
  caller: string
  role: string
  /** Where the request came from. */
  address: string
  /** `POST /v1/runs` */
  action: string
  /** What was requested, truncated; never a secret. */
  detail: string
  status: number
}

type KeptEntry = AuditEntry & { id: number; atMs: number }

const DETAIL_CHARS_MAX = 2000

export class Audit {
  readonly #db: SqlDatabase

  constructor(db: SqlDatabase) {
    this.#db = db
  }

  async add({ caller, role, address, action, detail, status }: AuditEntry): Promise<void> {
    await this.#db.rows(
      `insert into ${this.#db.dialect.prefix}audit (caller, role, address, action, detail, status)
       values ($1, $2, $3, $4, $5, $6)`,
      [caller, role, address, action, detail.slice(0, DETAIL_CHARS_MAX), status],
    )
  }

  /** Newest first; only entries before the given id. */
  async list({ limit, before }: { limit: number; before?: number | undefined }): Promise<KeptEntry[]> {
    const rows = await this.#db.rows(
      `select * from ${this.#db.dialect.prefix}audit where id < $2 order by id desc limit $1`,
      [limit, before ?? Number.MAX_SAFE_INTEGER],
    )
    return rows.map(toEntry)
  }
}

function toEntry(row: Row): KeptEntry {
  return {
    id: Number(row['id']),
    atMs: Number(row['at_ms']),
    caller: String(row['caller']),
    role: String(row['role']),
    address: String(row['address']),
    action: String(row['action']),
    detail: String(row['detail']),
    status: Number(row['status']),
  }
}
