/** Identifies the caller of a request, and refuses it if the caller is unknown or lacks the role. */
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { mayDo, type Role } from '../../core/role.ts'
import { Problem } from './problem.ts'
import type { Endpoint } from './routes/endpoint.ts'

export interface KnownCaller {
  /** Shown in the audit log: the name of the key, or the address. */
  readonly name: string
  readonly role: Role
  /** For rate limits and idempotency keys: unique per caller, whatever the names are. */
  readonly scope: string
}

export interface Unknown {
  readonly given: 'no key' | 'another scheme' | 'wrong key'
  /** How long until this address may send another wrong key; 0: now. */
  readonly waitMs: number
}

export interface CallerParts {
  identify(headers: IncomingHttpHeaders, socketAddress: string): Promise<KnownCaller | Unknown>
  /** The caller's address; forwarded addresses count only if they come from a trusted proxy. */
  addressOf(headers: IncomingHttpHeaders, socketAddress: string): string
}

export const socketAddressOf = (request: FastifyRequest) => request.socket.remoteAddress ?? ''

/** Throws 401, 403 or 429. */
export async function knownCaller(
  { identify }: CallerParts,
  { role, method, path }: Endpoint & { role: Role },
  request: FastifyRequest,
  onKnown: (caller: KnownCaller) => void,
): Promise<KnownCaller> {
  const found = await identify(request.headers, socketAddressOf(request))
  if ('given' in found) throw refusalOf(found)
  onKnown(found)
  if (!mayDo(found.role, role))
    throw new Problem(403, 'E_ROLE', `this key may ${found.role}; ${method} ${path} is for ${role}`)
  return found
}

/** Whether the caller of a response in progress is still known and still allowed to receive it. */
export async function isStillAllowed(
  { identify }: CallerParts,
  role: Role,
  request: FastifyRequest,
  scope: string,
): Promise<boolean> {
  const found = await identify(request.headers, socketAddressOf(request))
  return !('given' in found) && found.scope === scope && mayDo(found.role, role)
}

const SAID = {
  'no key': {
    detail: 'a key is needed',
    hint: 'Send it as `Authorization: Bearer KEY`. Create one with `sluice key create NAME`. Until the first key exists, the server also answers requests without one, but only direct ones from its own machine to localhost.',
  },
  'another scheme': {
    detail: 'the Authorization header is not a Bearer key',
    hint: 'Send it as `Authorization: Bearer KEY`.',
  },
  'wrong key': {
    detail: 'this key is unknown or revoked',
    hint: 'See `sluice key list`; keys that have been replaced or have expired no longer work.',
  },
} as const

function refusalOf({ given, waitMs }: Unknown): Problem {
  if (waitMs > 0) return tooMany(waitMs, 'too many requests from this address without a valid key')
  const { detail, hint } = SAID[given]
  return new Problem(401, 'E_KEY', detail, { hint, headers: { 'www-authenticate': 'Bearer' } })
}

export function tooMany(waitMs: number, detail: string): Problem {
  return new Problem(429, 'E_TOO_MANY_REQUESTS', detail, {
    headers: { 'retry-after': String(Math.ceil(waitMs / 1000)) },
  })
}
