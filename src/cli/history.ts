/** `sluice history`: what happened to one item across all runs that a server has read. */
import type { Command } from 'commander'
import { verbatim } from '../core/redact.ts'
import type { EntityHistory } from '../server/history/read.ts'
import { addReadFlags, printData, printJson, type ReadFlags } from './output.ts'
import { addPlaces, type PlaceFlags, placesOf } from './run-place.ts'

interface HistoryFlags extends ReadFlags, PlaceFlags {
  field?: string
}

const HELP = `
A server (\`sluice serve\` on the same --store) records the items of runs as they arrive. Name an item by its scraper and key.

Examples:
  sluice history books https://books.toscrape.com/catalogue/its-only-the-himalayas_981/index.html
  sluice history books URL --field price`

export function defineHistory(program: Command): void {
  const command = program
    .command('history <scraper> <key>')
    .description('show the history of an item over all runs: new, changed (field by field), gone, back')
    .option('--field <NAME>', 'show the values of this field over time')
    .addHelpText('after', HELP)
    .action(async (scraper: string, key: string, flags: HistoryFlags) => {
      await showHistory(scraper, key, flags)
    })
  addReadFlags(command, 'the history')
  addPlaces(command)
}

async function showHistory(scraper: string, key: string, flags: HistoryFlags): Promise<void> {
  const [{ openServeDatabase }, { History }, { ScrapeError }] = await Promise.all([
    import('../app/serve/server/database.ts'),
    import('../server/history/read.ts'),
    import('../core/errors.ts'),
  ])
  const { places } = await placesOf(flags)
  const { store, db } = await openServeDatabase(places)
  await using _ = store
  const known = await new History(db).of(scraper, key)
  if (flags.field === undefined) return flags.json ? printJson(verbatim(known)) : printData(await changesText(known))
  const values = known.fields[flags.field]
  if (values === undefined)
    throw new ScrapeError('E_USAGE', `the item has no field ${flags.field}`, {
      notes: [`fields: ${Object.keys(known.fields).join(', ')}`],
    })
  if (flags.json) return printJson(verbatim(values.map(({ atMs, value }) => ({ at: new Date(atMs), value }))))
  const { printableData } = await import('./style.ts')
  printData(values.map(({ atMs, value }) => `${timeOf(atMs)}  ${printableData(textOf(value))}`).join('\n'))
}

async function changesText({ entity, changes, isCut }: EntityHistory): Promise<string> {
  const { paintFor, printableData: printable } = await import('./style.ts')
  const paint = paintFor(process.stdout)
  const lines = changes.flatMap(({ atMs, kind, runId, fields }) => [
    `${timeOf(atMs)}  ${paint(COLOURS[kind], kind)}  run ${runId}`,
    ...fields.map(
      ({ field, before, after }) =>
        `    ${printable(field)}: ${paint('red', printable(textOf(before)))} → ${paint('green', printable(textOf(after)))}`,
    ),
  ])
  const { status, firstSeenAtMs, lastSeenAtMs, timesSeen } = entity
  const now = `${status}, seen ${timesSeen} times from ${timeOf(firstSeenAtMs)} to ${timeOf(lastSeenAtMs)}`
  return [...(isCut ? ['older changes are not shown'] : []), ...lines, now].join('\n')
}

const COLOURS = { new: 'green', back: 'green', changed: 'yellow', gone: 'red' } as const

const timeOf = (ms: number) => new Date(ms).toISOString()
const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))
