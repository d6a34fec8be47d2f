/** Receives commands: every worker reads all commands sent after it started, and keeps those meant for it. */
import { type CommandMessage, commandSchema, MESSAGE_BYTES_MAX, readMessage } from '../../protocol/messages.ts'
import type { GroupReader } from '../../protocol/redis-group-reader.ts'
import { REFUSE } from '../../protocol/redis-lua.ts'
import { messageOf } from '../../protocol/redis-replies.ts'
import { refusalText } from '../../protocol/refusal.ts'
import { ERRORS_KEPT, type StreamNames } from '../../protocol/streams.ts'

const AT_ONCE = 100
/** Every worker reads a command within seconds; a suspended machine a little later. */
const REFUSED_REMEMBERED_SECONDS = 3_600

interface CommandReaderOptions {
  workerId: string
  type: string
  /** Called for an unreadable command, only in the first worker that sees it. */
  onRefused: (entryId: string, reason: string) => void
}

export class CommandReader {
  readonly #reader: GroupReader
  readonly #names: StreamNames
  readonly #options: CommandReaderOptions
  #after = '0-0'

  constructor(reader: GroupReader, names: StreamNames, options: CommandReaderOptions) {
    this.#reader = reader
    this.#names = names
    this.#options = options
  }

  /** Skips commands from before this worker started. */
  async open(): Promise<void> {
    const last = (await this.#reader.call('XREVRANGE', this.#names.commands, '+', '-', 'COUNT', 1)) as [string][]
    this.#after = last[0]?.[0] ?? '0-0'
  }

  async hear(): Promise<CommandMessage['command'][]> {
    const { commands } = this.#names
    const entries = (await this.#reader.call('XRANGE', commands, `(${this.#after}`, '+', 'COUNT', AT_ONCE)) as [
      string,
      string[],
    ][]
    const heard: CommandMessage['command'][] = []
    for (const [id, fields] of entries) {
      const message = messageOf(fields)
      const read = readMessage(commandSchema, message, MESSAGE_BYTES_MAX.command)
      if (!read.ok) await this.#refuse(id, message, read.reason)
      else if (this.#isMeant(read.value)) heard.push(read.value.command)
      this.#after = id
    }
    return heard
  }

  async #refuse(id: string, message: string | undefined, reason: string): Promise<void> {
    const { commands: stream, errors, refusedCommand } = this.#names
    const text = refusalText({ stream, id, message }, reason, this.#options.workerId)
    const args = [refusedCommand(id), REFUSED_REMEMBERED_SECONDS, errors, ERRORS_KEPT, text]
    if ((await this.#reader.run(REFUSE, args)) === 1) this.#options.onRefused(id, reason)
  }

  #isMeant({ worker_id, scraper_type }: CommandMessage): boolean {
    if (worker_id !== undefined) return worker_id === this.#options.workerId
    return scraper_type === undefined || scraper_type === this.#options.type
  }
}
