/** The schema of the frontier, version by version. */
import type { Migrations } from '../../drivers/postgres/migrate.ts'
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

/** Drops and recreates the functions in a text: their parameters may have changed. */
const again = (functions: string) => {
  const names = [...functions.matchAll(/create function sluice\.(\w+)/g)].map(([, name]) => `'${name}'`)
  return `
  do $$
  declare
    v_function regprocedure;
  begin
    for v_function in select p.oid from pg_proc p where p.pronamespace = 'sluice'::regnamespace and p.proname in (${names.join(', ')}) loop
      execute 'drop function ' || v_function;
    end loop;
  end $$;
  ${functions}`
}

/** Added when commits began to count. New databases have it from step 1; older ones get it here. */
const COUNTS = `
  alter table sluice.tally add column if not exists counts jsonb;
  ${again([HELPERS, COMMIT, STATS].join('\n'))}`

export const FRONTIER_MIGRATIONS: Migrations = {
  part: 'frontier',
  steps: [[TABLES, VIEW, HELPERS, RUNS, ITEMS, ADMIT, CLAIM, COMMIT, SWEEP, DEAD, STATS].join('\n'), COUNTS],
}
