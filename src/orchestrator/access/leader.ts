/** One of several servers does what must be done once. Who leads says so every few seconds; who is silent does not lead. */
import type { SqlDatabase } from '../store/sql.ts'

const LEAD_MS = 15_000
const RENEW_MS = 5_000

export interface Leadership extends AsyncDisposable {
  readonly isLeader: boolean
}

/** Tries until disposed of. `onChange` is told when it begins and when it ceases to lead. */
export function lead(
  db: SqlDatabase,
  { name, holder, onChange }: { name: string; holder: string; onChange: (isLeader: boolean) => void },
): Leadership {
  const { prefix, now } = db.dialect
  let isLeader = false
  let sureUntilMs = 0
  const set = (leads: boolean) => {
    if (leads === isLeader) return
    isLeader = leads
    onChange(leads)
  }
  const renew = async () => {
    const askedAtMs = performance.now()
    try {
      const mine = await db.rows(
        `insert into ${prefix}leader as its (name, holder, until_ms) values ($1, $2, ${now} + ${LEAD_MS})
         on conflict (name) do update set holder = excluded.holder, until_ms = excluded.until_ms
         where its.holder = excluded.holder or its.until_ms < ${now} returning holder`,
        [name, holder],
      )
      if (mine.length > 0) sureUntilMs = askedAtMs + LEAD_MS
      set(mine.length > 0)
    } catch {
      if (performance.now() > sureUntilMs) set(false) // another may lead by now
    }
  }
  const renewing = setInterval(() => void renew(), RENEW_MS)
  const first = renew()
  return {
    get isLeader() {
      return isLeader && performance.now() < sureUntilMs
    },
    async [Symbol.asyncDispose]() {
      clearInterval(renewing)
      await first
      set(false)
      await db.rows(`delete from ${prefix}leader where name = $1 and holder = $2`, [name, holder]).catch(() => {})
    },
  }
}
