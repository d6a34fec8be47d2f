/** Who asks: the bearer of a key, or whoever is on this machine where no key is wanted. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { LRUCache } from 'lru-cache'
import type { ApiParts } from '../../api/server.ts'
import { ScrapeError } from '../../core/errors.ts'
import type { Role } from '../../core/role.ts'
import { type ApiKey, type ApiKeys, isInUse } from '../../orchestrator/access/keys.ts'
import { readSecret } from '../config.ts'

/** A key that was revoked is refused after this long at the latest. */
const KNOWN_MS = 5_000
const KNOWN_MAX = 1000
/** Shorter ones can be guessed; and they are what is left of a key with a comma or a space in it. */
const OWN_KEY_CHARS_MIN = 16

/** Throws `E_OPTION` for an address that strangers reach when there is no key, and for a key of the environment that is too short. */
export async function identifier(keys: ApiKeys, host: string): Promise<ApiParts['identify']> {
  const own = ownKeys()
  const hasKeys = own().length > 0 || (await keys.list()).some((key) => isInUse(key))
  if (!isLoopback(host) && !hasKeys)
    throw new ScrapeError('E_OPTION', `${host} is reached by others, and there is no key`, {
      fix: 'Make one with `sluice key create NAME --role admin`, or set SLUICE_API_KEY; or listen on 127.0.0.1.',
    })
  const known = new LRUCache<string, { key: ApiKey | undefined }>({ max: KNOWN_MAX, ttl: KNOWN_MS })
  return async (headers, address) => {
    const { authorization } = headers
    const given = /^Bearer (\S{1,200})$/.exec(authorization ?? '')?.[1]
    // On loopback everybody is trusted, as with the files of this machine. A key that is given must be right all the same.
    if (given === undefined) {
      const isTrusted = authorization === undefined && own().length === 0 && isLoopback(host) && isLoopback(address)
      return isTrusted && isFromHere(headers) ? { name: address, role: 'admin' } : undefined
    }
    const ownKey = own().find(({ key }) => isSame(given, key))
    if (ownKey !== undefined) return { name: 'SLUICE_API_KEY', role: ownKey.role }
    let found = known.get(given)
    if (found === undefined) {
      found = { key: await keys.find(given) }
      known.set(given, found)
    }
    return found.key === undefined ? undefined : { name: found.key.name, role: found.key.role }
  }
}

/**
 * A web page somebody has open here sends its Origin, or a name of its own for this machine (DNS rebinding); a proxy in front says for
 * whom it asks. None of them is somebody of this machine.
 */
function isFromHere({ host = '', origin, ...headers }: IncomingHttpHeaders): boolean {
  const isForwarded = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'].some((name) => headers[name] !== undefined)
  const name = URL.parse(`http://${host}`)?.hostname.replace(/^\[|\]$/g, '') ?? ''
  return !isForwarded && isLoopback(name) && (origin === undefined || URL.parse(origin)?.host === host)
}

/**
 * The keys of the environment, separated by commas or lines: several while one is being replaced, or `read:KEY` and `operate:KEY`
 * for those who are no admins. A file is read again when it is old, because a secret that is rotated changes in place; one that has gone or was emptied meanwhile leaves the keys as they were.
 */
function ownKeys(): () => readonly OwnKey[] {
  const { SLUICE_API_KEY: text = '', SLUICE_API_KEY_FILE: file = '' } = process.env
  if (text !== '' || file === '') {
    const keys = ownKeysOf('SLUICE_API_KEY', text)
    return () => keys
  }
  const read = () => ownKeysOf('SLUICE_API_KEY_FILE', readSecret('SLUICE_API_KEY_FILE', file))
  let keys = read()
  let readAtMs = performance.now()
  return () => {
    if (performance.now() - readAtMs < KNOWN_MS) return keys
    readAtMs = performance.now()
    try {
      const now = read()
      if (now.length > 0) keys = now
    } catch {
      // it is being exchanged, or half written
    }
    return keys
  }
}

interface OwnKey {
  key: string
  role: Role
}

function ownKeysOf(variable: string, text: string): OwnKey[] {
  const keys = text
    .split(/[,\s]+/)
    .filter(Boolean)
    .map(ownKeyOf)
  const short = keys.findIndex(({ key }) => key.length < OWN_KEY_CHARS_MIN)
  if (short === -1) return keys
  throw new ScrapeError(
    'E_OPTION',
    `part ${short + 1} of ${keys.length} in ${variable} is shorter than ${OWN_KEY_CHARS_MIN} characters`,
    {
      fix: 'Commas, spaces and line ends separate keys, so a key has none of them. Make one with: openssl rand -hex 24',
    },
  )
}

function ownKeyOf(text: string): OwnKey {
  const [, role, key] = /^(read|operate|admin):(.+)$/.exec(text) ?? []
  return key === undefined ? { key: text, role: 'admin' } : { key, role: role as Role }
}

function isSame(a: string, b: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(hash(a), hash(b))
}

const isLoopback = (host: string) => /^(?:127\.|::1$|::ffff:127\.|localhost$)/.test(host)
