/** A child process of ours: typed messages in both directions, one end, and a stop that does not wait for ever. */
import { type ChildProcess, type ForkOptions, fork } from 'node:child_process'

export interface ChildEnd {
  /** For people: `SIGKILL`, `exit code 1`, or why it could not be started. */
  readonly how: string
  /** Null when a signal ended it, or it never started. */
  readonly code: number | null
}

interface ChildOptions<Message> extends Pick<ForkOptions, 'env' | 'execArgv' | 'serialization'> {
  /** Whether its standard output is ours; its standard error always is. Default: true. */
  isHeard?: boolean
  onMessage?: (message: Message) => void
}

export class Child<Order> {
  /** After its last message. Never rejects. */
  readonly ended: Promise<ChildEnd>
  readonly #process: ChildProcess
  #isOver = false

  constructor(process: ChildProcess) {
    this.#process = process
    this.ended = new Promise((resolve) => {
      const end = (how: string, code: number | null) => {
        this.#isOver = true
        resolve({ how, code })
      }
      const onExit = (code: number | null, signal: string | null) =>
        end(signal ?? `exit code ${code}`, signal === null ? code : null)
      // The last messages and lines may come after the exit. 'close' waits for both, but never comes once we have disconnected.
      const isDisconnected = new Promise<void>((resolve) => void process.once('disconnect', resolve))
      if (process.channel == null) process.once('close', onExit)
      else process.once('exit', (code, signal) => void isDisconnected.then(() => onExit(code, signal)))
      process.on('error', (error) => {
        if (process.pid === undefined) end(error.message, null) // of one that runs, its end says the same
      })
    })
  }

  get pid(): number | undefined {
    return this.#process.pid
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** One that has just died is noticed by its end. */
  send(order: Order): void {
    if (this.#process.connected) this.#process.send(order as object, () => {})
  }

  /** It gets no more orders, and is told so. */
  disconnect(): void {
    if (this.#process.connected) this.#process.disconnect()
  }

  /** SIGTERM lets it finish or hand back what it holds; after `graceMs` it is killed. */
  async stop(graceMs: number): Promise<ChildEnd> {
    if (!this.#isOver) this.#process.kill('SIGTERM')
    return await this.endsWithin(graceMs)
  }

  /** After `graceMs` it is killed. */
  async endsWithin(graceMs: number): Promise<ChildEnd> {
    const late = setTimeout(() => this.kill(), graceMs)
    const end = await this.ended
    clearTimeout(late)
    return end
  }

  kill(): void {
    this.#process.kill('SIGKILL')
  }
}

/** Runs the module `entry` in a separate process. */
export function startChild<Order, Message>(
  entry: string | URL,
  { isHeard = true, onMessage, ...options }: ChildOptions<Message> = {},
): Child<Order> {
  const child = fork(entry, { ...options, stdio: ['ignore', isHeard ? 'inherit' : 'ignore', 'inherit', 'ipc'] })
  if (onMessage !== undefined) child.on('message', (message) => onMessage(message as Message))
  return new Child(child)
}

/** For the child: its last message. Closing the channel drops what is not written yet (of 1,000 messages 172 arrived). */
export function sendLast(message: unknown): void {
  if (process.connected) process.send!(message, () => process.connected && process.disconnect())
}
