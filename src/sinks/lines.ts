/** A sink of text records in one file: what JSON Lines and CSV have in common. */
import type { LoggedItem } from '../core/item.ts'
import type { Sink, SinkResult } from './contract.ts'
import { AppendFile, formatPosition, parsePosition } from './file.ts'

const HEAD_BYTES_MAX = 64 * 1024

export interface LineFormat {
  name: string
  path: string
  /** What a new file starts with, as far as that is known before the first item. */
  begin(): string
  /** A file goes on that starts with `head` (its first 64 KiB, or all of it). Throws when the format does not fit it. */
  resume(head: string): void
  lineEnd: '\n' | '\r\n'
  /** The item as one record, without the line end. */
  encode(item: LoggedItem): string
  /**
   * The same record as bytes, into the buffer at `at`, where there is usually room for 4 bytes per character of the item's
   * JSON. Returns where it ends; -1 to be asked for `encode`.
   */
  encodeInto?(item: LoggedItem, buffer: Buffer, at: number): number
}

export class LineSink implements Sink {
  readonly name: string
  readonly path: string
  readonly #format: LineFormat
  #file: AppendFile | undefined
  #rows = 0

  constructor(format: LineFormat) {
    this.name = format.name
    this.path = format.path
    this.#format = format
  }

  async open(position: string | undefined): Promise<void> {
    const { path } = this.#format
    if (position === undefined) {
      this.#file = await AppendFile.create(path)
      await this.#file.append(this.#format.begin(), '')
      return
    }
    const { bytes, rows } = parsePosition(path, position)
    this.#file = await AppendFile.reopen(path, bytes)
    this.#rows = rows
    const head = await this.#file.read(Math.min(bytes, HEAD_BYTES_MAX))
    this.#format.resume(head.toString('utf8'))
  }

  async write(items: readonly LoggedItem[]): Promise<void> {
    const waiting = this.writeNow(items)
    if (waiting !== undefined) await waiting
  }

  /** `write` for callers that count in nanoseconds: a promise only when the disk is behind. */
  writeNow(items: readonly LoggedItem[]): undefined | Promise<void> {
    const file = this.#opened()
    this.#rows += items.length
    for (let i = 0; i < items.length; i++) {
      if (!this.#tryWrite(file, items[i]!)) return this.#writeRest(file, items, i)
    }
    return undefined
  }

  #tryWrite(file: AppendFile, item: LoggedItem): boolean {
    const format = this.#format
    if (format.encodeInto !== undefined) {
      const buffer = file.reserve(item.json.length * 4)
      const end = buffer === undefined ? -1 : format.encodeInto(item, buffer, file.reservedAt)
      if (end !== -1) {
        file.take(end, format.lineEnd)
        return true
      }
    }
    return file.tryAppend(format.encode(item), format.lineEnd)
  }

  async #writeRest(file: AppendFile, items: readonly LoggedItem[], from: number): Promise<void> {
    for (let i = from; i < items.length; i++) {
      if (!this.#tryWrite(file, items[i]!)) await file.append(this.#format.encode(items[i]!), this.#format.lineEnd)
    }
  }

  async flush(): Promise<string> {
    const bytes = await this.#opened().flush()
    return formatPosition({ bytes, rows: this.#rows })
  }

  async finish(): Promise<SinkResult> {
    const bytes = await this.#opened().flush()
    return { target: this.path, rows: this.#rows, bytes }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const file = this.#file
    this.#file = undefined
    await file?.[Symbol.asyncDispose]()
  }

  #opened(): AppendFile {
    if (this.#file === undefined) throw new Error(`the sink ${this.name} is not open`)
    return this.#file
  }
}
