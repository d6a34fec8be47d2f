/** `sluice export`: the items of a run, as a stream or a file. */
import { once } from 'node:events'
import type { Command } from 'commander'
import type { ExportFormat } from '../runs/export-items.ts'
import { addOptions } from './flags.ts'
import { note } from './output.ts'
import { RUN_HELP, withRun } from './run-place.ts'
import { printableData } from './style.ts'

interface ExportFlags {
  format: string
  out?: string
  runs?: string
  frontier?: string
  store?: string
  redis?: string
  columns?: string
  formulaSafe?: boolean
  quiet?: boolean
}

const HELP = `${RUN_HELP} For an active run you get the items that are safely written so far.

Examples:
  sluice export books | head -n 3
  sluice export books --format csv --out books.csv
  sluice export books --format csv --columns title,price,url
  sluice export 20261115_113501_x7k2 --format parquet --out books.parquet`

export function defineExport(program: Command): void {
  const command = program
    .command('export [run]')
    .description('write the items of a run to standard output, or to a file')
    .option('--format <jsonl|csv|parquet>', 'output format', 'jsonl')
    .option('--out <FILE>', 'write to this file, atomically')
    .option('--columns <LIST>', 'CSV columns, in this order (comma separated)')
    .option('--formula-safe', 'escape CSV cells that a spreadsheet would run as formulas')
    .option('--runs <DIR>', 'base folder for runs (default: runs, or SLUICE_OUT)')
    .option('--quiet', 'print only items and errors')
    .option('-v, --verbose', 'print stack traces')
    .addHelpText('after', HELP)
    .action(async (run: string | undefined, flags: ExportFlags) => {
      process.exitCode = await exportRun(run, flags)
    })
  addOptions(command, ['frontier', 'store', 'redis'])
}

async function exportRun(word: string | undefined, flags: ExportFlags): Promise<number> {
  const [{ EXPORT_FORMATS, exportItems, writeExport }, { ScrapeError }] = await Promise.all([
    import('../runs/export-items.ts'),
    import('../core/errors.ts'),
  ])
  const format = formatOf(flags, EXPORT_FORMATS)
  if (format === undefined)
    throw new ScrapeError('E_USAGE', `items are not written as ${JSON.stringify(flags.format)}`, {
      fix: `--format ${EXPORT_FORMATS.join(' or ')}`,
    })
  if (format === 'parquet' && flags.out === undefined && process.stdout.isTTY)
    throw new ScrapeError('E_USAGE', 'Parquet is binary, and standard output is a terminal', {
      fix: 'Add --out FILE.parquet, or > FILE.parquet.',
    })
  const { runs, frontier, store, redis } = flags
  return await withRun(word, { out: runs, frontier, store, redis }, async ({ run, places }) => {
    const columns = flags.columns?.split(',').map((name) => name.trim())
    const pieces = exportItems({
      run,
      format,
      ...(columns === undefined ? {} : { columns }),
      formulaSafe: flags.formulaSafe === true || places.formulaSafe,
    })
    if (!run.isOver && !flags.quiet) note(`run ${run.record.id} is still running: these are its items so far`)
    if (flags.out === undefined) await toStdout(pieces)
    else {
      const bytes = await writeExport(pieces, flags.out)
      if (!flags.quiet) {
        const { formatBytes } = await import('./style.ts')
        note(`${flags.out}  ${formatBytes(bytes)}`)
      }
    }
    return 0
  })
}

function formatOf({ format }: ExportFlags, known: readonly ExportFormat[]): ExportFormat | undefined {
  return known.find((one) => one === (format === 'json' ? 'jsonl' : format))
}

/** A reader such as `| head` may close the pipe early: then we are done. */
export async function toStdout(pieces: AsyncIterable<string | Buffer>): Promise<void> {
  let isGone = false
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    isGone = true
    process.stdout.emit('drain') // release writers that wait for the buffer to drain
  })
  for await (const piece of pieces) {
    if (isGone) return
    const text = process.stdout.isTTY && typeof piece === 'string' ? harmless(piece) : piece
    if (!process.stdout.write(text) && !isGone) await once(process.stdout, 'drain')
  }
}

/** Scraped text must not send escape sequences to a terminal; a file or a pipe gets it unchanged. */
function harmless(text: string): string {
  return text.split('\n').map(printableData).join('\n')
}
