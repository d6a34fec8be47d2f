/** Our User-Agent: truthful, and with a contact of the operator. */
import { createRequire } from 'node:module'

export const VERSION = (createRequire(import.meta.url)('../../package.json') as { version: string }).version

export function userAgent({
  userAgent,
  contact,
}: {
  userAgent?: string | undefined
  contact?: string | undefined
}): string {
  return userAgent ?? `Sluice/${VERSION} (${contact === undefined ? 'no contact given' : `+${contact}`})`
}
