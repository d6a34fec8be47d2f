/** `sluice diff`: what was added, removed and changed between two runs. */
import type { Command } from 'commander'
import type { Difference, DiffTotals, SchemaDifference } from '../runs/diff-runs.ts'
import { collect } from './flags.ts'
import { addReadFlags, note, type ReadFlags } from './output.ts'
import { addPlaces, type PlaceFlags, withRun } from './run-place.ts'
import type { Paint } from './style.ts'

interface DiffFlags extends ReadFlags, PlaceFlags {
  key?: string
  ignore?: string[]
  allFields?: boolean
  exitCode?: boolean
}

const HELP = `
Name a run by its id, its scraper (its latest run) or its path; runs of a fleet need --frontier postgres://…,
redis://… or amqp://… (SLUICE_FRONTIER) and, if that is not a database, --store (SLUICE_STORE). Items are matched by the scraper's key, or by
--key FIELD; without either, only identical items match. Fields that say when a page was fetched (scraped_at, fetched_at, crawled_at,
retrieved_at, extracted_at, also scrapedAt …) are ignored. Fields that only one of the runs has in its schema are listed at the end and are
not compared (--all-fields compares both).

Examples:
  sluice diff 20261114_060000_aa11 20261115_060000_bb22
  sluice diff runs/books/20261114_060000_aa11 books --key url --ignore stock
  sluice diff 20261114_060000_aa11 books --json --exit-code`

export function defineDiff(program: Command): void {
  const command = program
    .command('diff <run-before> <run-after>')
    .description('compare the items of two runs: added, removed, changed field by field')
    .option('--key <FIELD>', 'match items by this field')
    .option('--ignore <FIELD>', 'do not compare this field (may be repeated)', collect)
    .option(
      '--all-fields',
      'also compare fields that say when a page was fetched, and fields that only one of the runs has',
    )
    .option('--exit-code', 'exit with code 1 if they differ')
    .addHelpText('after', HELP)
    .action(async (before: string, after: string, flags: DiffFlags) => {
      process.exitCode = await diff(before, after, flags)
    })
  addReadFlags(command, 'a line for each difference and one with the totals')
  addPlaces(command)
}

async function diff(before: string, after: string, flags: DiffFlags): Promise<number> {
  const [{ diffItems, identityOf, itemsToDiff, schemaDifference }, { TIMES_OF_READING }, { toStdout }] =
    await Promise.all([import('../runs/diff-runs.ts'), import('../server/history/content.ts'), import('./export.ts')])
  return await withRun(before, flags, (one) =>
    withRun(after, flags, async (other) => {
      const identity = await identityOf(one.run, other.run, flags.key)
      if (identity.why !== undefined && !flags.quiet)
        note(
          `note: items are compared as wholes, so none can have changed; --key FIELD matches them\n  ${identity.why}\n`,
        )
      const leftOut = new Set<string>()
      const schema = flags.allFields ? { added: [], removed: [] } : schemaDifference(one.run, other.run)
      const ofScraper = [...schema.added, ...schema.removed]
      const differences = diffItems(
        { items: await itemsToDiff(one.run), keyOf: identity.before },
        { items: await itemsToDiff(other.run), keyOf: identity.after },
        [...(flags.allFields ? [] : TIMES_OF_READING), ...ofScraper, ...(flags.ignore ?? [])],
        leftOut,
      )
      const show = flags.json ? jsonView : await textView()
      let totals: DiffTotals | undefined
      async function* pieces(): AsyncGenerator<string> {
        for (;;) {
          const { value, done } = await differences.next()
          if (done) {
            totals = value
            if (!flags.quiet || flags.json)
              yield show.totals(value, [...leftOut.difference(new Set(ofScraper))], schema)
            return
          }
          if (!flags.quiet || flags.json) yield show.difference(value)
        }
      }
      await toStdout(pieces())
      if (totals === undefined || !flags.exitCode) return 0 // undefined: the reader closed the pipe
      return totals.added + totals.removed + totals.changed > 0 ? 1 : 0
    }),
  )
}

interface View {
  difference(difference: Difference): string
  /** Includes fields that differed but were not to be compared. */
  totals(totals: DiffTotals, leftOut: readonly string[], schema: SchemaDifference): string
}

const jsonView: View = {
  difference: (difference) => `${JSON.stringify(difference)}\n`,
  totals: (totals, leftOut, { added: fieldsAdded, removed: fieldsRemoved }) =>
    `${JSON.stringify({ kind: 'totals', ...totals, leftOut, fieldsAdded, fieldsRemoved })}\n`,
}

const ITEM_COLUMNS_MAX = 160

async function textView(): Promise<View> {
  const { formatCount, paintFor, plural, printableData: printable, truncate } = await import('./style.ts')
  const paint: Paint = paintFor(process.stdout)
  const value = (json: unknown) => printable(typeof json === 'string' ? json : JSON.stringify(json))
  const whole = (item: object) => truncate(printable(JSON.stringify(item)), ITEM_COLUMNS_MAX)
  return {
    difference(difference) {
      const key = printable(difference.key)
      switch (difference.kind) {
        case 'added':
          return `${paint('green', `+ ${key}`)}  ${whole(difference.item)}\n`
        case 'removed':
          return `${paint('red', `- ${key}`)}  ${whole(difference.item)}\n`
        case 'changed': {
          const lines = Object.entries(difference.fields).map(
            ([field, change]) =>
              `    ${printable(field)}: ${paint('red', value(change.old))} → ${paint('green', value(change.new))}\n`,
          )
          return `${paint('yellow', `~ ${key}`)}\n${lines.join('')}`
        }
        default:
          return difference satisfies never
      }
    },
    totals({ added, removed, changed, unchanged, repeated }, leftOut, schema) {
      const counts = `${formatCount(added)} added, ${formatCount(removed)} removed, ${formatCount(changed)} changed, ${formatCount(unchanged)} unchanged`
      const repeats = repeated === 0 ? '' : `; ${plural(repeated, 'item')} with a repeated key ignored`
      const fields = leftOut.length === 0 ? '' : `; not compared: ${leftOut.map(printable).join(', ')}`
      const named = (what: string, names: readonly string[]) =>
        names.length === 0 ? '' : `; fields ${what}: ${names.map(printable).join(', ')}`
      return `${counts}${repeats}${named('added', schema.added)}${named('removed', schema.removed)}${fields}\n`
    },
  }
}
