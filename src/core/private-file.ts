/** Databases with secrets in them (cookies, webhook secrets, URLs with tokens) are only readable by their owner, whatever the umask. */
import { chmodSync, closeSync, existsSync, openSync } from 'node:fs'

const OWNER_ONLY = 0o600

/** Files that SQLite creates next to the database, with the same permissions. */
const COMPANIONS = ['-wal', '-shm', '-journal']

/**
 * Call it before SQLite opens the file. A new file is private from its first byte; a file of an earlier version is made private now.
 * An existing file is not opened, because closing it again would drop the locks that SQLite holds in this process.
 */
export function makeOwnerOnly(path: string): void {
  try {
    closeSync(openSync(path, 'wx', OWNER_ONLY))
  } catch {
    // The file already exists, or it cannot be created, which SQLite reports with an error its callers know.
  }
  for (const file of [path, ...COMPANIONS.map((ending) => path + ending)]) closeToOthers(file)
}

function closeToOthers(file: string): void {
  if (!existsSync(file)) return
  try {
    chmodSync(file, OWNER_ONLY)
  } catch {
    // The file belongs to another user who gave us access, or it has just been removed.
  }
}
