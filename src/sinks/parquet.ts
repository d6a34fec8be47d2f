/**
 * Parquet. Its footer makes a growing file impossible, so items gather as JSON Lines beside it (`….part`), which can be cut
 * and continued like any other output, and `finish` turns them into the real file:
 *
 *   part ─▶ read once for the types ─▶ read again, one row group at a time, into ….tmp ─▶ rename ─▶ part removed
 *
 * A crash anywhere in between finds the part, or the finished file that names its position, and ends up in the same place.
 */
import { constants } from 'node:fs'
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { asyncBufferFromFile, parquetMetadataAsync } from 'hyparquet'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import { ScrapeError } from '../core/errors.ts'
import type { LoggedItem } from '../core/item.ts'
import type { Sink, SinkResult } from './contract.ts'
import { errnoOf, outputError, parsePosition, syncFolder } from './file.ts'
import { createJsonlSink } from './jsonl.ts'
import type { LineSink } from './lines.ts'
import { ColumnTypes, columnValue, schemaOf } from './parquet-types.ts'
import { readLines } from './read-lines.ts'

/** A row group is held in memory whole: it ends at whichever of these comes first. */
const GROUP_ROWS_MAX = 20_000
const GROUP_CHARS_MAX = 16 * 1024 * 1024
const POSITION_KEY = 'sluice.position'

export class ParquetSink implements Sink {
  readonly name: string
  readonly path: string
  readonly #fields: readonly string[]
  readonly #part: LineSink
  /** Set once the finished file exists. */
  #finished: { position: string } | undefined

  constructor({ path, name = 'parquet', fields }: { path: string; name?: string; fields: readonly string[] }) {
    this.name = name
    this.path = path
    this.#fields = fields
    this.#part = createJsonlSink({ path: `${path}.part`, name })
  }

  async open(position: string | undefined): Promise<void> {
    if (position !== undefined && !(await exists(this.#part.path)) && (await positionOf(this.path)) === position) {
      this.#finished = { position }
      return
    }
    await this.#part.open(position)
  }

  async write(items: readonly LoggedItem[]): Promise<void> {
    if (this.#finished === undefined) return this.#part.write(items)
    if (items.length === 0) return
    throw new ScrapeError('E_OUTPUT', `cannot write ${this.path}: it is finished`, {
      fix: 'A finished run takes no more items; start a new one.',
    })
  }

  async flush(): Promise<string> {
    return this.#finished?.position ?? (await this.#part.flush())
  }

  async finish(): Promise<SinkResult> {
    const position = await this.flush()
    if (this.#finished === undefined) {
      try {
        await this.#convert(position)
      } catch (error) {
        throw outputError(this.path, error)
      }
      this.#finished = { position }
      await this.#part[Symbol.asyncDispose]()
      await rm(this.#part.path, { force: true })
    }
    return { target: this.path, rows: parsePosition(this.path, position).rows, bytes: (await stat(this.path)).size }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#part[Symbol.asyncDispose]()
  }

  async #convert(position: string): Promise<void> {
    const types = new ColumnTypes(this.#fields)
    for await (const lines of readLines(this.#part.path)) {
      for (const line of lines) types.add(JSON.parse(line) as Record<string, unknown>)
    }
    const temporary = `${this.path}.tmp`
    const handle = await open(temporary, constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC, 0o644)
    try {
      await writeGroups(handle, this.#part.path, types, position)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(temporary, this.path)
    await syncFolder(dirname(this.path))
  }
}

async function writeGroups(handle: FileHandle, part: string, types: ColumnTypes, position: string): Promise<void> {
  const bytes = new ByteWriter()
  const columns = types.resolve()
  const writer = new ParquetWriter({
    writer: bytes,
    schema: schemaOf(columns),
    kvMetadata: [{ key: POSITION_KEY, value: position }],
  })
  let written = 0
  async function spill(): Promise<void> {
    for (let rest = new Uint8Array(bytes.buffer, 0, bytes.index); rest.length > 0; ) {
      const { bytesWritten } = await handle.write(rest, 0, rest.length, written)
      written += bytesWritten
      rest = rest.subarray(bytesWritten)
    }
    bytes.index = 0 // the writer keeps its own count of the offset in the file
  }

  let data: unknown[][] = columns.map(() => [])
  let rows = 0
  let chars = 0
  async function endGroup(): Promise<void> {
    if (rows === 0) return
    const columnData = columns.map(({ name }, i) => ({ name, data: data[i]! }))
    await writer.write({ columnData, rowGroupSize: rows })
    await spill()
    data = columns.map(() => [])
    rows = 0
    chars = 0
  }

  for await (const lines of readLines(part)) {
    for (const line of lines) {
      const item = JSON.parse(line) as Record<string, unknown>
      for (let i = 0; i < columns.length; i++) data[i]!.push(columnValue(item, columns[i]!))
      rows++
      chars += line.length
      if (rows >= GROUP_ROWS_MAX || chars >= GROUP_CHARS_MAX) await endGroup()
    }
  }
  await endGroup()
  await writer.finish()
  await spill()
}

/** The position a finished file was made from; undefined when there is no such file. */
async function positionOf(path: string): Promise<string | undefined> {
  if (!(await exists(path))) return undefined
  const metadata = await parquetMetadataAsync(await asyncBufferFromFile(path)).catch(() => undefined)
  return metadata?.key_value_metadata?.find(({ key }) => key === POSITION_KEY)?.value
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false
    throw outputError(path, error)
  }
}
