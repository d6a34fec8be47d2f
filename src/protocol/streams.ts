/** Names of the streams and of their consumer groups. */

export interface StreamNames {
  /** Task streams of a type, in reading order: priority above 0, then the others. */
  tasks(type: string): [priority: string, ordinary: string]
  /** A sorted set: tasks to be retried, by the time (epoch ms) when they are due. */
  delayed(type: string): string
  readonly results: string
  readonly errors: string
  readonly health: string
  readonly commands: string
  /** A key: set once the command has been refused. */
  refusedCommand(entryId: string): string
}

export const WORKERS_GROUP = 'workers'
export const COLLECTORS_GROUP = 'collectors'

/** Approximate lengths of streams that are never acknowledged. */
export const ERRORS_KEPT = 10_000
export const HEALTH_KEPT = 10_000
export const COMMANDS_KEPT = 1_000

/** `prefix` separates several systems on one Redis: `prefix` + name. */
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
