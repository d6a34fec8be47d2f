/**
 * Parquet. Its footer rules out a growing file, so items are collected as JSON Lines next to it (`….part`), which can be cut off
 * and continued like any other output, and `finish` turns them into the real file:
 *
 *   part ─▶ read once for the types ─▶ read again, one row group at a time, into ….tmp ─▶ rename
 *
 * After a crash anywhere in between, the part is still there and the result is the same. The part is kept: dead letters may be
 * retried after the end, and the run then continues from it.
 */
import { constants } from 'node:fs'
import { type FileHandle, open, rename, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { LoggedItem } from '../core/item.ts'
import { optionalPackage } from '../core/optional-package.ts'
import type { Sink, SinkResult } from './contract.ts'
import { outputError, syncFolder } from './file.ts'
import { createJsonlSink } from './jsonl.ts'
import type { LineSink } from './lines.ts'
import { ColumnTypes, columnValue, schemaOf } from './parquet-types.ts'
import { readLines } from './read-lines.ts'

const { ByteWriter, ParquetWriter } = await optionalPackage(
  'Parquet needs',
  'hyparquet-writer',
  () => import('hyparquet-writer'),
)

/** A row group is held in memory as a whole: it ends at whichever of these comes first. */
const GROUP_ROWS_MAX = 20_000
const GROUP_CHARS_MAX = 16 * 1024 * 1024

export class ParquetSink implements Sink {
  readonly name: string
  readonly path: string
  readonly #fields: readonly string[]
  readonly #part: LineSink

  constructor({ path, name = 'parquet', fields }: { path: string; name?: string; fields: readonly string[] }) {
    this.name = name
    this.path = path
    this.#fields = fields
    this.#part = createJsonlSink({ path: `${path}.part`, name })
  }

  open(position: string | undefined): Promise<void> {
    return this.#part.open(position)
  }

  write(items: readonly LoggedItem[]): Promise<void> {
    return this.#part.write(items)
  }

  flush(): Promise<string> {
    return this.#part.flush()
  }

  soFar(): SinkResult {
    return this.#part.soFar()
  }

  async finish(): Promise<SinkResult> {
    const { rows } = await this.#part.finish()
    try {
      await this.#convert()
      return { target: this.path, rows, bytes: (await stat(this.path)).size }
    } catch (error) {
      throw outputError(this.path, error)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#part[Symbol.asyncDispose]()
  }

  async #convert(): Promise<void> {
    const types = new ColumnTypes(this.#fields)
    for await (const lines of readLines(this.#part.path)) {
      for (const line of lines) types.add(JSON.parse(line) as Record<string, unknown>)
    }
    const temporary = `${this.path}.tmp`
    const handle = await open(temporary, constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC, 0o644)
    try {
      await writeGroups(handle, this.#part.path, types)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(temporary, this.path)
    await syncFolder(dirname(this.path))
  }
}

async function writeGroups(handle: FileHandle, part: string, types: ColumnTypes): Promise<void> {
  const bytes = new ByteWriter()
  const columns = types.resolve()
  const writer = new ParquetWriter({ writer: bytes, schema: schemaOf(columns) })
  let written = 0
  async function spill(): Promise<void> {
    for (let rest = new Uint8Array(bytes.buffer, 0, bytes.index); rest.length > 0; ) {
      const { bytesWritten } = await handle.write(rest, 0, rest.length, written)
      written += bytesWritten
      rest = rest.subarray(bytesWritten)
    }
    bytes.index = 0 // the writer tracks the offset in the file itself
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
