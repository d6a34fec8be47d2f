/** Who we say we are: the truth, and how to reach whoever runs this. */
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
