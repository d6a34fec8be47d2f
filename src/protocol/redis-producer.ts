/** The producer's side: puts tasks and commands on the streams, and waits for results. */
import { randomUUID } from 'node:crypto'
import { Connection, type ConnectionOptions } from '../drivers/redis/connection.ts'
import {
  type CommandMessage,
  commandSchema,
  FINAL_STATUSES,
  MESSAGE_BYTES_MAX,
  type ResultMessage,
  readMessage,
  resultSchema,
  type TaskMessage,
  taskSchema,
} from './messages.ts'
import { entriesByStream, messageOf } from './redis-replies.ts'
import { COMMANDS_KEPT, type StreamNames } from './streams.ts'

interface ProducerOptions extends ConnectionOptions {
  url: string
  names: StreamNames
}

export type NewTaskMessage = Pick<TaskMessage, 'scraper_type'> & Partial<TaskMessage>

const WAIT_BLOCK_MS = 1_000
const RESULTS_READ = 20

export class TaskProducer implements Disposable {
  readonly #names: StreamNames
  readonly #connection: Connection

  constructor({ names, url, ...options }: ProducerOptions) {
    this.#names = names
    this.#connection = new Connection(url, options)
  }

  /** A task in its stream format. Throws the zod error if it is invalid. */
  static taskOf(task: NewTaskMessage): TaskMessage {
    return taskSchema.parse({ task_id: randomUUID(), created_at: new Date().toISOString(), ...task })
  }

  /** May put it on the stream twice if the answer was lost; its results are stored once. */
  async submit(task: TaskMessage): Promise<void> {
    const [priority, ordinary] = this.#names.tasks(task.scraper_type)
    await this.#add(task.priority > 0 ? priority : ordinary, JSON.stringify(task))
  }

  async command(command: Omit<CommandMessage, 'version'>): Promise<void> {
    const text = JSON.stringify(commandSchema.parse(command))
    await this.#add(this.#names.commands, text, 'MAXLEN', '~', COMMANDS_KEPT)
  }

  /** The position after which results are new: call this before submitting the task. */
  async resultsSoFar(): Promise<string> {
    const last = (await this.#call('XREVRANGE', this.#names.results, '+', '-', 'COUNT', 1)) as [string][]
    return last[0]?.[0] ?? '0-0'
  }

  /** The final result of a task, part by part. Ends early if the signal is aborted. */
  async *resultOf(taskId: string, since: string, signal: AbortSignal): AsyncGenerator<ResultMessage> {
    let after = since
    while (!signal.aborted) {
      const words = ['COUNT', RESULTS_READ, 'BLOCK', WAIT_BLOCK_MS, 'STREAMS', this.#names.results, after]
      const [found] = entriesByStream(await this.#call('XREAD', ...words))
      for (const [id, fields] of found?.[1] ?? []) {
        after = id
        const read = readMessage(resultSchema, messageOf(fields), MESSAGE_BYTES_MAX.result)
        if (!read.ok || read.value.task_id !== taskId || !FINAL_STATUSES.includes(read.value.status)) continue
        yield read.value
        if (read.value.part === undefined || read.value.part.number === read.value.part.of) return
      }
    }
  }

  #add(stream: string, message: string, ...how: (string | number)[]): Promise<unknown> {
    return this.#call('XADD', stream, ...how, '*', 'message', message)
  }

  #call(command: string, ...args: (string | number)[]): Promise<unknown> {
    return this.#connection.attempt(() => this.#connection.redis.call(command, ...args))
  }

  [Symbol.dispose](): void {
    this.#connection.close()
  }
}
