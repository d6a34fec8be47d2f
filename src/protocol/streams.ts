/** The names of the streams and of the groups that read them. */

export interface StreamNames {
  /** Tasks of a type in the order they are read: those with a priority above 0, then the others. */
  tasks(type: string): [priority: string, ordinary: string]
  /** A sorted set: tasks that are to be tried again, by the time (epoch ms) from which on. */
  delayed(type: string): string
  readonly results: string
  readonly errors: string
  readonly health: string
  readonly commands: string
  /** A key: somebody has refused this command. */
  refusedCommand(entryId: string): string
}

export const WORKERS_GROUP = 'workers'
export const COLLECTORS_GROUP = 'collectors'

/** Streams nobody acknowledges are kept about so long. */
export const ERRORS_KEPT = 10_000
export const HEALTH_KEPT = 10_000
export const COMMANDS_KEPT = 1_000

/** `prefix` keeps several systems on one Redis apart: `prefix` + name. */
export function streamNames(prefix = ''): StreamNames {
  return {
    tasks: (type) => [`${prefix}scraping:tasks:${type}:priority`, `${prefix}scraping:tasks:${type}`],
    delayed: (type) => `${prefix}scraping:tasks:${type}:delayed`,
    results: `${prefix}scraping:results`,
    errors: `${prefix}scrapers:errors`,
    health: `${prefix}scrapers:health`,
    commands: `${prefix}scrapers:commands`,
    refusedCommand: (entryId) => `${prefix}scrapers:commands:refused:${entryId}`,
  }
}
