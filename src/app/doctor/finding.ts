/** The result of one check of the machine. */
export interface Finding {
  check: string
  /** missing: a service that was requested does not answer. */
  status: 'ok' | 'warn' | 'fail' | 'missing'
  what: string
  /** Empty when there is nothing to do. */
  fix: string
}

export type Result = Omit<Finding, 'check'>
export const ok = (what: string): Result => ({ status: 'ok', what, fix: '' })
export const warn = (what: string, fix: string): Result => ({ status: 'warn', what, fix })
export const fail = (what: string, fix: string): Result => ({ status: 'fail', what, fix })
export const missing = (what: string, fix: string): Result => ({ status: 'missing', what, fix })
