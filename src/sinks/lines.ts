/** A sink that writes text records to one file: what JSON Lines and CSV have in common. */
import type { LoggedItem } from '../core/item.ts'
import type { Sink, SinkResult } from './contract.ts'
import { AppendFile, formatPosition, parsePosition } from './file.ts'

const HEAD_BYTES_MAX = 64 * 1024

export interface LineFormat {
  name: string
  path: string
  /** What a new file starts with, as far as it is known before the first item. */
  begin(): string
  /** Resumes a file that starts with `head` (its first 64 KiB, or all of it). Throws if the format does not match. */
  resume(head: string): void
  lineEnd: '\n' | '\r\n'
  /** The item as one record, without the line end. */
  encode(item: LoggedItem): string
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

  /** `write` for callers that count nanoseconds: returns a promise only if the disk is behind. */
  writeNow(items: readonly LoggedItem[]): undefined | Promise<void> {
    const file = this.#opened()
    this.#rows += items.length
    const { encode, lineEnd } = this.#format
    for (let i = 0; i < items.length; i++) {
      const record = encode(items[i]!)
      if (!file.tryAppend(record, lineEnd)) return this.#writeRest(file, record, items, i + 1)
    }
    return undefined
  }

  async #writeRest(file: AppendFile, record: string, items: readonly LoggedItem[], from: number): Promise<void> {
    const { encode, lineEnd } = this.#format
    await file.append(record, lineEnd)
    for (let i = from; i < items.length; i++) await file.append(encode(items[i]!), lineEnd)
  }

  async flush(): Promise<string> {
    const bytes = await this.#opened().flush()
    return formatPosition({ bytes, rows: this.#rows })
  }

  soFar(): SinkResult {
    return { target: this.path, rows: this.#rows, bytes: this.#opened().bytes }
  }

  async finish(): Promise<SinkResult> {
    await this.#opened().flush()
    return this.soFar()
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
