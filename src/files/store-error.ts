/** Maps errors with our own files to our codes. A full or read-only disk ends the run, resumable; the rest is temporary. */
import { ScrapeError } from '../core/errors.ts'

const NO_ROOM = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])
const CLOSED = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOTDIR'])

/** For file system errors, in the spool or in a folder used as the store. */
export function diskError(cause: unknown, what: string): unknown {
  const { code = '', message } = cause as NodeJS.ErrnoException
  if (cause instanceof ScrapeError || typeof code !== 'string' || !/^E[A-Z0-9]+$/.test(code)) return cause
  if (NO_ROOM.has(code)) return new ScrapeError('E_OUTPUT', `no room for ${what}: ${message}`, { cause })
  if (CLOSED.has(code)) return new ScrapeError('E_OUTPUT', `${what} cannot be written: ${message}`, { cause })
  return new ScrapeError('E_FILE_STORE', `${what}: ${message}`, { cause })
}
