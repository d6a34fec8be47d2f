/** `sluice audit`: who did what through the API, and which requests were refused. */
import type { Command } from 'commander'
import { addReadFlags, print, printJson, type ReadFlags } from './output.ts'
import { addPlaces, type PlaceFlags, placesOf } from './run-place.ts'

interface AuditFlags extends ReadFlags, PlaceFlags {
  limit: string
}

const HELP = `
Every request that changes something is logged with its outcome; rejected requests once per minute, address and status.
Retention: \`sluice serve --keep-history\`.

Examples:
  sluice audit
  sluice audit --limit 1000 --json`

export function defineAudit(program: Command): void {
  const command = program
    .command('audit')
    .description('show the audit log of the API, newest first')
    .option('--limit <n>', 'maximum number of entries', '50')
    .addHelpText('after', HELP)
    .action(listAudit)
  addReadFlags(command, 'the entries')
  addPlaces(command)
}

const LIMIT_MAX = 100_000

async function listAudit(flags: AuditFlags): Promise<void> {
  const [{ openServeDatabase }, { Audit }, { ScrapeError }] = await Promise.all([
    import('../app/serve/server/database.ts'),
    import('../server/access/audit.ts'),
    import('../core/errors.ts'),
  ])
  const limit = Number(flags.limit)
  if (!Number.isInteger(limit) || limit < 1 || limit > LIMIT_MAX)
    throw new ScrapeError('E_USAGE', `--limit takes a whole number from 1 to ${LIMIT_MAX}, got ${flags.limit}`)
  const { places } = await placesOf(flags)
  const { store, db } = await openServeDatabase(places)
  await using _ = store
  const entries = await new Audit(db).list({ limit })
  const timed = entries.map(({ atMs, ...entry }) => ({ ...entry, at: new Date(atMs).toISOString() }))
  if (flags.json) return printJson({ entries: timed })
  if (flags.quiet) return
  const { printable, table } = await import('./style.ts')
  const rows = timed.map(({ at, caller, role, address, action, status, detail }) => {
    return [at, printable(caller), role, address, action, String(status), printable(detail).slice(0, 80)]
  })
  const head = ['time', 'caller', 'role', 'from', 'action', 'status', 'detail']
  print(rows.length === 0 ? 'nothing yet' : table([head, ...rows]))
}
