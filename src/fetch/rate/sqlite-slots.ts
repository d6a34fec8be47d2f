/** Shared slots: request rates and pauses kept in one small SQLite file, for all processes of a machine. */
import { readFileSync } from 'node:fs'
import { uptime } from 'node:os'
import type { DatabaseSync } from 'node:sqlite'
import { openSqlite } from '../../drivers/sqlite/open.ts'
import type { SharedSlots } from './spacing.ts'

/**
 * `tat_ms`: when the next request would start if they came evenly. `start_ms`: the latest slot granted (stored only because
 * RETURNING sees new values). Times are on the machine's monotonic clock, which all processes share and which cannot be set.
 */
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS boot (id TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS slot (
    host TEXT PRIMARY KEY,
    tat_ms REAL NOT NULL DEFAULT 0,
    start_ms REAL NOT NULL DEFAULT 0,
    paused_until_ms REAL NOT NULL DEFAULT 0
  ) WITHOUT ROWID, STRICT`

const RESERVE = `
  INSERT INTO slot (host, tat_ms, start_ms) VALUES (:host, :nowMs + :intervalMs, :nowMs)
  ON CONFLICT (host) DO UPDATE SET
    start_ms = max(:nowMs, tat_ms - :earlyMs),
    tat_ms = max(:nowMs, tat_ms) + :intervalMs
  RETURNING start_ms`

const PAUSE = `
  INSERT INTO slot (host, paused_until_ms) VALUES (:host, :untilMs)
  ON CONFLICT (host) DO UPDATE SET paused_until_ms = max(paused_until_ms, :untilMs)`

const FORGET_IDLE = 'DELETE FROM slot WHERE tat_ms < :nowMs AND paused_until_ms < :nowMs'

/** Rows of idle hosts are deleted every time this many slots have been reserved. */
const RESERVES_PER_CLEANING = 10_000

interface SqliteSlotsOptions {
  now?: () => number
  /** Milliseconds on a clock that all processes of the machine share. Default: CLOCK_MONOTONIC. */
  monotonicNow?: () => number
}

/** Opens the file, which any number of processes may share. It holds nothing worth keeping. */
export function openSqliteSlots(path: string, options: SqliteSlotsOptions = {}): SharedSlots {
  const now = options.now ?? Date.now
  const monotonicNow = options.monotonicNow ?? (() => Number(process.hrtime.bigint()) / 1e6)
  // No fsync: a crash of the machine loses only spacing that the reboot makes void anyway.
  const setUp = (opened: DatabaseSync) => {
    opened.exec('BEGIN IMMEDIATE')
    opened.exec(SCHEMA)
    forgetOtherBoot(opened)
    opened.prepare(FORGET_IDLE).run({ nowMs: monotonicNow() })
    opened.exec('COMMIT')
  }
  const db = openSqlite(path, { busyMsMax: 5_000, synchronous: 'off', setUp })

  const reserve = db.prepare(RESERVE)
  const pause = db.prepare(PAUSE)
  const paused = db.prepare('SELECT paused_until_ms AS untilMs FROM slot WHERE host = ?')
  const forgetIdle = db.prepare(FORGET_IDLE)
  let reserves = 0

  return {
    reserve(host, intervalMs, earlyMs = 0) {
      const nowMs = monotonicNow()
      const row = reserve.get({ host, nowMs, intervalMs, earlyMs }) as { start_ms: number }
      if (++reserves % RESERVES_PER_CLEANING === 0) forgetIdle.run({ nowMs })
      return now() + row.start_ms - nowMs
    },
    pause(host, untilMs) {
      pause.run({ host, untilMs: monotonicNow() + untilMs - now() })
    },
    pausedUntilMs(host) {
      const row = paused.get(host) as { untilMs: number } | undefined
      if (row === undefined || row.untilMs === 0) return 0
      const remainingMs = row.untilMs - monotonicNow()
      return remainingMs > 0 ? now() + remainingMs : 0
    },
    [Symbol.dispose]() {
      if (db.isOpen) db.close()
    },
  }
}

/** The monotonic clock restarts with the machine: values written before a reboot mean nothing after it. */
function forgetOtherBoot(db: DatabaseSync): void {
  const bootId = readBootId()
  const row = db.prepare('SELECT id FROM boot').get() as { id: string } | undefined
  if (row?.id === bootId) return
  db.exec('DELETE FROM boot; DELETE FROM slot')
  db.prepare('INSERT INTO boot (id) VALUES (?)').run(bootId)
}

function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    // Elsewhere: the boot time, rounded so that a clock correction of some minutes still gives the same value.
    return `booted ${Math.round((Date.now() / 1000 - uptime()) / 10_000)}`
  }
}
