/** The schema of the frontier, version by version. */
import type { Migrations } from '../../postgres/migrate.ts'
import { ADMIT } from './admit-sql.ts'
import { CLAIM } from './claim-sql.ts'
import { COMMIT } from './commit-sql.ts'
import { DEAD } from './dead-sql.ts'
import { HELPERS } from './functions.ts'
import { ITEMS } from './items.ts'
import { RUNS } from './runs.ts'
import { TABLES, VIEW } from './schema.ts'
import { STATS } from './stats-sql.ts'
import { SWEEP } from './sweep-sql.ts'

export const FRONTIER_MIGRATIONS: Migrations = {
  part: 'frontier',
  steps: [[TABLES, VIEW, HELPERS, RUNS, ITEMS, ADMIT, CLAIM, COMMIT, SWEEP, DEAD, STATS].join('\n')],
}
