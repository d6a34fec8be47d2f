/**
 * Exports the items of a run in constant memory. For a running run, exports everything that is committed: never half a line, and
 * nothing that a crash could still undo.
 */
import { createReadStream, mkdtempSync, rmSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ScrapeError } from '../core/errors.ts'
import { cell, rowEncoder } from '../sinks/csv-row.ts'
import { errnoOf, outputError } from '../sinks/file.ts'
import type { OpenRun, RunItems } from './run-view.ts'

export const EXPORT_FORMATS = ['jsonl', 'csv', 'parquet'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

interface ExportRequest {
  run: OpenRun
  format: ExportFormat
  /** Columns of a CSV, in order; default: those of the run's own CSV, else every field of any item. */
  columns?: readonly string[]
  formulaSafe: boolean
}

/** The output in chunks, ready to be written one after the other. */
export async function* exportItems(request: ExportRequest): AsyncGenerator<string | Buffer> {
  const { run, format } = request
  const items = await run.items()
  if (items === undefined) {
    // The run wrote no JSON; the only thing left to offer is its own file, unchanged.
    const ready = run.finishedFile(format)
    if (ready === undefined || request.columns !== undefined) throw noItems(run, format)
    yield* createReadStream(ready) as AsyncIterable<Buffer>
    return
  }
  switch (format) {
    case 'jsonl':
      yield* items.text()
      return
    case 'csv':
      yield* csvOf(items, request)
      return
    case 'parquet':
      yield* parquetOf(items)
      return
    default:
      return format satisfies never
  }
}

function noItems({ place, record }: OpenRun, format: ExportFormat): ScrapeError {
  const written = record.outputs.map((output) => output.target)
  return new ScrapeError('E_RUN_NOT_FOUND', `run ${record.id} has no items that can be given as ${format}`, {
    notes: [written.length > 0 ? `it wrote ${written.join(', ')}` : `nothing is in ${place} yet`],
    fix: 'Runs keep their items for export with --format jsonl (the default); or take the file it wrote.',
  })
}

async function* csvOf(items: RunItems, { columns: given, formulaSafe }: ExportRequest): AsyncGenerator<string> {
  const columns = given ?? (await items.columns()) ?? (await fieldsOf(items))
  if (columns.length === 0) return
  const fields = given === undefined ? columns : await fieldsOf(items)
  const missing = columns.filter((column) => !fields.includes(column))
  if (missing.length > 0)
    throw new ScrapeError('E_USAGE', `no item has the field${missing.length > 1 ? 's' : ''} ${missing.join(', ')}`, {
      notes: [`fields: ${fields.join(', ')}`],
    })
  yield `${columns.map(cell).join(',')}\r\n`
  const encode = rowEncoder({ columns, formulaSafe })
  for await (const rows of items.batches())
    yield `${rows.map(({ json }) => encode(JSON.parse(json) as object)).join('\r\n')}\r\n`
}

/** Every field of any item, in order of first appearance. */
async function fieldsOf(items: RunItems): Promise<string[]> {
  const fields = new Set<string>()
  for await (const rows of items.batches())
    for (const { json } of rows) for (const field of Object.keys(JSON.parse(json))) fields.add(field)
  return [...fields]
}

/** A Parquet file begins with what is known only at its end, so it is written to a temporary file first. */
async function* parquetOf(items: RunItems): AsyncGenerator<Buffer> {
  const { ParquetSink } = await import('../sinks/parquet.ts')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-export-'))
  try {
    const path = join(folder, 'items.parquet')
    await using sink = new ParquetSink({ path, fields: await fieldsOf(items) })
    await sink.open(undefined)
    let seq = 0
    for await (const rows of items.batches())
      await sink.write(rows.map(({ json }) => ({ seq: ++seq, key: String(seq), json })))
    await sink.finish()
    yield* createReadStream(path) as AsyncIterable<Buffer>
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Writes a file that is either complete or not there at all. Returns its length. */
export async function writeExport(pieces: AsyncIterable<string | Buffer>, path: string): Promise<number> {
  const temporary = `${path}.${process.pid}.tmp`
  let bytes = 0
  try {
    await using file = await open(temporary, 'w')
    for await (const piece of pieces) {
      const data = typeof piece === 'string' ? Buffer.from(piece) : piece
      await file.appendFile(data)
      bytes += data.length
    }
    await file.sync()
    await rename(temporary, path)
    return bytes
  } catch (error) {
    await rm(temporary, { force: true })
    if (errnoOf(error) === 'ENOENT')
      throw new ScrapeError('E_OUTPUT', `cannot write ${path}: its folder does not exist`, {
        fix: 'Make the folder first, or choose another --out.',
        cause: error,
      })
    throw outputError(path, error)
  }
}
