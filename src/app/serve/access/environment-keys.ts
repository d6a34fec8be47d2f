/** API keys from the environment: `SLUICE_API_KEY`, or the file named by `SLUICE_API_KEY_FILE`. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { readSecret } from '../../../config/config.ts'
import { ScrapeError } from '../../../core/errors.ts'
import type { Role } from '../../../core/role.ts'
import { FRESH_MS } from './known-keys.ts'

/** Shorter keys can be guessed, or are fragments of a key with a comma or a space in it. */
const KEY_CHARS_MIN = 16

export interface EnvironmentKey {
  key: string
  /** For the audit log and for limits: distinguishes the keys, and does not depend on their order in the file. */
  name: string
  role: Role
}

/**
 * Separated by commas or newlines: several while a key is being rotated, or `read:KEY` and `operate:KEY` for roles other than
 * admin. The file is reread from time to time, because rotating a secret changes it on disk; if it is missing or empty at that
 * moment, the keys stay as they were. Throws `E_OPTION` for a key that is too short.
 */
export function environmentKeys(env: NodeJS.ProcessEnv): () => readonly EnvironmentKey[] {
  const { SLUICE_API_KEY: text = '', SLUICE_API_KEY_FILE: file = '' } = env
  if (text !== '' || file === '') {
    const keys = keysIn('SLUICE_API_KEY', text)
    return () => keys
  }
  const read = () => keysIn('SLUICE_API_KEY_FILE', readSecret('SLUICE_API_KEY_FILE', file))
  let keys = read()
  let readAtMs = performance.now()
  return () => {
    if (performance.now() - readAtMs < FRESH_MS) return keys
    readAtMs = performance.now()
    try {
      const now = read()
      if (now.length > 0) keys = now
    } catch {
      // it is being replaced or written
    }
    return keys
  }
}

/** Compares in constant time. */
export function isSameKey(a: string, b: string): boolean {
  return timingSafeEqual(hashOf(a), hashOf(b))
}

const hashOf = (text: string) => createHash('sha256').update(text).digest()

function keysIn(variable: string, text: string): EnvironmentKey[] {
  const parts = text.split(/[,\s]+/).filter(Boolean)
  const keys = parts.map(keyOf)
  const short = keys.findIndex(({ key }) => key.length < KEY_CHARS_MIN)
  if (short === -1) return keys
  throw new ScrapeError(
    'E_OPTION',
    `part ${short + 1} of ${keys.length} in ${variable} is shorter than ${KEY_CHARS_MIN} characters`,
    {
      fix: 'Keys are separated by commas, spaces or line ends, so a key cannot contain them. Generate one with: openssl rand -hex 24',
    },
  )
}

function keyOf(text: string): EnvironmentKey {
  const [, role = 'admin', key = text] = /^(read|operate|admin):(.+)$/.exec(text) ?? []
  // A few bits of its hash: enough to distinguish keys in the audit log, but useless for guessing the key.
  return { key, role: role as Role, name: `SLUICE_API_KEY:${hashOf(key).toString('hex').slice(0, 8)}` }
}
