/** Databases with secrets in them (cookies, webhook secrets, URLs with tokens) are for their owner only, whatever the umask says. */
import { chmodSync, closeSync, existsSync, openSync } from 'node:fs'

const OWNER_ONLY = 0o600

/** Of SQLite, beside the file itself. It makes them with the permissions the file has. */
const COMPANIONS = ['-wal', '-shm', '-journal']

/**
 * To be called before SQLite opens it. A new file is closed to others from its first byte; one of an earlier version is closed now. The
 * file is not opened when it is there: closing it again would drop the locks of SQLite in this process.
 */
export function makeOwnerOnly(path: string): void {
  try {
    closeSync(openSync(path, 'wx', OWNER_ONLY))
  } catch {
    // It is there already; or it cannot be made, which SQLite will say in the words its callers know.
  }
  for (const file of [path, ...COMPANIONS.map((ending) => path + ending)]) closeToOthers(file)
}

function closeToOthers(file: string): void {
  if (!existsSync(file)) return
  try {
    chmodSync(file, OWNER_ONLY)
  } catch {
    // Another user's, who let us in: it is theirs to close. Or gone just now.
  }
}
