/** Response cache in a SQLite file: it outlives the process, for the next run of a scraper in development. */

import { openSqlite } from '../../drivers/sqlite/open.ts'
import { CACHE_FRESH_MS, type CacheOptions, createCache, type ResponseCache, type StoredPage } from './cache.ts'

/** The index includes the size, so that summing up and evicting never read the bodies. */
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS page (
    key TEXT PRIMARY KEY,
    fetched_at_ms INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    head TEXT NOT NULL,
    body BLOB NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS page_age ON page (fetched_at_ms, bytes)`

const UPSERT = `
  INSERT INTO page (key, fetched_at_ms, bytes, head, body) VALUES (:key, :fetchedAtMs, :bytes, :head, :body)
  ON CONFLICT (key) DO UPDATE SET fetched_at_ms = :fetchedAtMs, bytes = :bytes, head = :head, body = :body`

/** Evicts the oldest pages that together make up at least `:excess` bytes. */
const MAKE_ROOM = `
  DELETE FROM page WHERE rowid IN (
    SELECT rowid FROM (
      SELECT rowid, bytes, sum(bytes) OVER (ORDER BY fetched_at_ms, rowid) AS upTo FROM page
    ) WHERE upTo - bytes < :excess
  )`

/** Pages are evicted each time this share of `bytesMax` has been written, so the file may exceed the limit by as much. */
const ROOM_SHARE = 1 / 16

export function openSqliteCache(path: string, options: CacheOptions = {}): ResponseCache {
  const { bytesMax = 1024 ** 3, freshMs = CACHE_FRESH_MS, now = Date.now } = options
  // No fsync: a page lost to a crash is fetched again.
  const db = openSqlite(path, {
    busyMsMax: 5_000,
    synchronous: 'off',
    pragmas: 'pragma auto_vacuum = incremental',
    setUp: (opened) => opened.exec(SCHEMA),
  })
  const select = db.prepare('SELECT head, body FROM page WHERE key = ?')
  const upsert = db.prepare(UPSERT)
  const total = db.prepare('SELECT coalesce(sum(bytes), 0) AS bytes FROM page')
  const dropStale = db.prepare('DELETE FROM page WHERE fetched_at_ms <= ?')
  const makeRoom = db.prepare(MAKE_ROOM)
  let writtenBytes = Number.POSITIVE_INFINITY // the file may come from a run with another limit, so check it at once

  function lookAfter(): void {
    writtenBytes = 0
    dropStale.run(now() - freshMs)
    const excess = (total.get() as { bytes: number }).bytes - bytesMax
    if (excess > 0) makeRoom.run({ excess })
  }

  return createCache(
    {
      get(key) {
        const row = select.get(key) as { head: string; body: Uint8Array } | undefined
        if (row === undefined) return undefined
        const { buffer, byteOffset, byteLength } = row.body
        return { ...(JSON.parse(row.head, nullPrototype) as Head), body: Buffer.from(buffer, byteOffset, byteLength) }
      },
      set(key, { body, ...head }) {
        const bytes = body.length + 2000
        if (bytes > bytesMax) return
        upsert.run({ key, fetchedAtMs: head.fetchedAtMs, bytes, head: JSON.stringify(head), body })
        writtenBytes += bytes
        if (writtenBytes > bytesMax * ROOM_SHARE) lookAfter()
      },
      [Symbol.dispose]() {
        if (db.isOpen) db.close()
      },
    },
    options,
  )
}

type Head = Omit<StoredPage, 'body'>

/** Headers are untrusted, and one may be named `__proto__`. */
function nullPrototype(key: string, value: unknown): unknown {
  return key === 'headers' && typeof value === 'object' ? Object.assign(Object.create(null), value) : value
}
