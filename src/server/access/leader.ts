/** Leader election, for work that only one of several servers may do. The leader renews every few seconds, or loses the lead. */
import { every } from '../../core/every.ts'
import type { SqlDatabase } from '../../drivers/sql.ts'

const LEAD_MS = 15_000
const RENEW_MS = 5_000
/** The leader does the due work: history, webhooks, retention. It is also the one that fires schedules. */
export const SCHEDULER = 'ingest'

export interface Leadership extends AsyncDisposable {
  readonly isLeader: boolean
}

/** Keeps trying until disposed. `onChange` is called when this server starts and stops leading. */
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
      if (performance.now() > sureUntilMs) set(false) // another server may lead by now
    }
  }
  const renewing = every(() => renew(), RENEW_MS)
  const first = renew()
  return {
    get isLeader() {
      return isLeader && performance.now() < sureUntilMs
    },
    async [Symbol.asyncDispose]() {
      clearInterval(renewing)
      await first
      set(false)
      // Lets another server lead at once, and keeps the time this one was last seen.
      await db
        .rows(`update ${prefix}leader set until_ms = ${now} - 1 where name = $1 and holder = $2`, [name, holder])
        .catch(() => {})
    },
  }
}

export interface LeaderSeen {
  /** There is a leader now. */
  isThere: boolean
  /** The last heartbeat; undefined if there never was one. Up to 15 s early for a server that shut down cleanly. */
  atMs: number | undefined
}

/** Does not take part in the election. */
export async function leaderSeen(db: SqlDatabase, name: string): Promise<LeaderSeen> {
  const { prefix, now } = db.dialect
  const [found] = await db.rows(`select until_ms, ${now} as now_ms from ${prefix}leader where name = $1`, [name])
  if (found === undefined) return { isThere: false, atMs: undefined }
  const untilMs = Number(found['until_ms'])
  return { isThere: untilMs >= Number(found['now_ms']), atMs: untilMs - LEAD_MS }
}
