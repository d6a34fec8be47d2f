/**
 * The items of a run, from its folder to somewhere else, in constant memory. Of a run that is going on, everything its sinks
 * have confirmed: never half a line, and nothing that a crash could still take back.
 */
import { createReadStream, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ScrapeError } from '../core/errors.ts'
import { cell, rowEncoder } from '../sinks/csv-row.ts'
import { errnoOf, outputError } from '../sinks/file.ts'
import type { OpenRun } from './open-run.ts'

export const EXPORT_FORMATS = ['jsonl', 'csv', 'parquet'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

export interface ExportRequest {
  run: OpenRun
  format: ExportFormat
  /** Columns of a CSV, in order; default: those of the run's own CSV, else every field some item has. */
  columns?: readonly string[]
  formulaSafe: boolean
}

/** The output in pieces, ready to be written one after the other. */
export async function* exportItems(request: ExportRequest): AsyncGenerator<string | Buffer> {
  const { run, format } = request
  const source = await findSource(run)
  if (source === undefined) {
    // Nobody wrote the items as JSON; the one thing that can still be given is the file as it is.
    const ready = run.folder.file(`items.${format}`)
    if (run.isAlive || !existsSync(ready) || request.columns !== undefined) throw noItems(run, format)
    yield* createReadStream(ready) as AsyncIterable<Buffer>
    return
  }
  switch (format) {
    case 'jsonl':
      yield* source.bytes === 0
        ? []
        : (createReadStream(source.path, { end: source.bytes - 1 }) as AsyncIterable<Buffer>)
      return
    case 'csv':
      yield* csvOf(source, request)
      return
    case 'parquet':
      yield* parquetOf(source)
      return
    default:
      return format satisfies never
  }
}

interface Source {
  path: string
  /** Confirmed length; the file may be longer. */
  bytes: number
}

/** JSON Lines of the run: its own, or those a Parquet file will be made of. */
async function findSource({ folder, frontier }: OpenRun): Promise<Source | undefined> {
  const confirmed = await frontier?.items.confirmed()
  for (const [sink, name] of [
    ['jsonl', 'items.jsonl'],
    ['parquet', 'items.parquet.part'],
  ] as const) {
    const path = folder.file(name)
    if (!existsSync(path)) continue
    // Without the queue nobody tells how much is confirmed; whole lines are the next best.
    if (confirmed === undefined) return { path, bytes: await wholeLines(path) }
    return { path, bytes: Number(confirmed.positions[sink]?.split(':')[0] ?? 0) }
  }
  return undefined
}

function noItems({ folder, record }: OpenRun, format: ExportFormat): ScrapeError {
  const written = record.outputs.map((output) => output.target)
  return new ScrapeError('E_RUN_NOT_FOUND', `run ${record.id} has no items that can be given as ${format}`, {
    notes: [written.length > 0 ? `it wrote ${written.join(', ')}` : `nothing is in ${folder.path} yet`],
    fix: 'Runs keep their items for export with --format jsonl (the default); or take the file it wrote.',
  })
}

/** Length of a file up to its last line end. */
async function wholeLines(path: string): Promise<number> {
  await using file = await open(path, 'r')
  const buffer = Buffer.alloc(CHUNK_BYTES)
  for (let { size: end } = await file.stat(); end > 0; ) {
    const start = Math.max(0, end - CHUNK_BYTES)
    const { bytesRead } = await file.read(buffer, 0, end - start, start)
    const at = buffer.subarray(0, bytesRead).lastIndexOf(0x0a)
    if (at !== -1) return start + at + 1
    end = start
  }
  return 0
}

const CHUNK_BYTES = 256 * 1024

/** Whole lines, some hundred at a time. */
async function* linesOf({ path, bytes }: Source): AsyncGenerator<string[]> {
  if (bytes === 0) return
  let rest: Buffer[] = []
  for await (const chunk of createReadStream(path, {
    end: bytes - 1,
    highWaterMark: CHUNK_BYTES,
  }) as AsyncIterable<Buffer>) {
    const end = chunk.lastIndexOf(0x0a)
    if (end === -1) {
      rest.push(chunk)
      continue
    }
    yield Buffer.concat([...rest, chunk.subarray(0, end)])
      .toString('utf8')
      .split('\n')
    rest = end + 1 < chunk.length ? [chunk.subarray(end + 1)] : []
  }
}

async function* csvOf(source: Source, { run, columns: given, formulaSafe }: ExportRequest): AsyncGenerator<string> {
  const columns = given ?? (await ownColumns(run)) ?? (await fieldsOf(source))
  if (columns.length === 0) return
  const fields = given === undefined ? columns : await fieldsOf(source)
  const missing = columns.filter((column) => !fields.includes(column))
  if (missing.length > 0)
    throw new ScrapeError('E_USAGE', `no item has the field${missing.length > 1 ? 's' : ''} ${missing.join(', ')}`, {
      notes: [`fields: ${fields.join(', ')}`],
    })
  yield `${columns.map(cell).join(',')}\r\n`
  const encode = rowEncoder({ columns, formulaSafe })
  for await (const lines of linesOf(source))
    yield `${lines.map((line) => encode(JSON.parse(line) as object)).join('\r\n')}\r\n`
}

/** The header of the CSV the run wrote itself, which has the scraper's order. */
async function ownColumns({ folder }: OpenRun): Promise<string[] | undefined> {
  const path = folder.file('items.csv')
  if (!existsSync(path)) return undefined
  for await (const chunk of createReadStream(path, { end: 64 * 1024 }) as AsyncIterable<Buffer>) {
    const header = /^([^"\r\n]+)\r?\n/.exec(chunk.toString('utf8'))?.[1]
    return header?.split(',') // names in quotes: rare enough to read the items instead
  }
  return undefined
}

/** Every field some item has, in the order they first come. */
async function fieldsOf(source: Source): Promise<string[]> {
  const fields = new Set<string>()
  for await (const lines of linesOf(source))
    for (const line of lines) for (const field of Object.keys(JSON.parse(line))) fields.add(field)
  return [...fields]
}

/** A Parquet file begins with what is known only at its end, so it is made beside and then given. */
async function* parquetOf(source: Source): AsyncGenerator<Buffer> {
  const { ParquetSink } = await import('../sinks/parquet.ts')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-export-'))
  try {
    const path = join(folder, 'items.parquet')
    await using sink = new ParquetSink({ path, fields: await fieldsOf(source) })
    await sink.open(undefined)
    let seq = 0
    for await (const lines of linesOf(source))
      await sink.write(lines.map((json) => ({ seq: ++seq, key: String(seq), json })))
    await sink.finish()
    yield* createReadStream(path) as AsyncIterable<Buffer>
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** To a file that is complete or not there at all. Gives its length. */
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
