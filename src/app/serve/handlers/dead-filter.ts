/** The dead letters that a caller selects. */
import type { DeadFilter } from '../../../frontier/contract.ts'

export function filterOf(given: {
  class?: string | undefined
  code?: string | undefined
  host?: string | undefined
}): DeadFilter {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}
