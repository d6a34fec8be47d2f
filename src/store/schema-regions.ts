/** Where a run wants to be worked on, where a worker is, and which part of a run's work it does. Null: anywhere, all of it. */
import type { Dialect } from '../drivers/sql.ts'

export const regionColumns = ({ prefix }: Dialect): string => `
  alter table ${prefix}run_record add column region text;
  alter table ${prefix}worker add column region text;
  alter table ${prefix}worker add column only_part text;
  alter table ${prefix}schedule add column region text;`
