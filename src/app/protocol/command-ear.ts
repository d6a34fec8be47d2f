/** Hears commands: every worker reads all of them, from its start on, and keeps those meant for it. */
import { type CommandMessage, commandSchema, MESSAGE_BYTES_MAX, readMessage } from '../../protocol/messages.ts'
import type { GroupReader } from '../../protocol/redis/group-reader.ts'
import { messageOf } from '../../protocol/redis/replies.ts'
import type { StreamNames } from '../../protocol/streams.ts'

const AT_ONCE = 100

export class CommandEar {
  readonly #reader: GroupReader
  readonly #stream: string
  readonly #own: { workerId: string; type: string }
  #after = '0-0'

  constructor(reader: GroupReader, { commands }: StreamNames, own: { workerId: string; type: string }) {
    this.#reader = reader
    this.#stream = commands
    this.#own = own
  }

  /** What was said before is for those who were there. */
  async open(): Promise<void> {
    const last = (await this.#reader.call('XREVRANGE', this.#stream, '+', '-', 'COUNT', 1)) as [string][]
    this.#after = last[0]?.[0] ?? '0-0'
  }

  /** What nobody can read is passed over. */
  async hear(): Promise<CommandMessage['command'][]> {
    const entries = (await this.#reader.call('XRANGE', this.#stream, `(${this.#after}`, '+', 'COUNT', AT_ONCE)) as [
      string,
      string[],
    ][]
    this.#after = entries.at(-1)?.[0] ?? this.#after
    return entries.flatMap(([, fields]) => {
      const read = readMessage(commandSchema, messageOf(fields), MESSAGE_BYTES_MAX.command)
      return read.ok && this.#isMeant(read.value) ? [read.value.command] : []
    })
  }

  #isMeant({ worker_id, scraper_type }: CommandMessage): boolean {
    if (worker_id !== undefined) return worker_id === this.#own.workerId
    return scraper_type === undefined || scraper_type === this.#own.type
  }
}
