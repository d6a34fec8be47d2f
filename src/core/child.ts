/** A child process: typed messages in both directions, a single end, and a stop that does not wait forever. */
import { type ChildProcess, type ForkOptions, fork } from 'node:child_process'

export interface ChildEnd {
  /** For people: `SIGKILL`, `exit code 1`, or why it could not be started. */
  readonly how: string
  /** Null if a signal ended it, or it never started. */
  readonly code: number | null
}

interface ChildOptions<Message> extends Pick<ForkOptions, 'env' | 'execArgv' | 'serialization'> {
  /** Whether it inherits our standard output; it always inherits standard error. Default: true. */
  isHeard?: boolean
  onMessage?: (message: Message) => void
}

export class Child<Order> {
  /** Resolves after its last message. Never rejects. */
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
        if (process.pid === undefined) end(error.message, null) // for a running process, its exit is the end
      })
    })
  }

  get pid(): number | undefined {
    return this.#process.pid
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** If the process has just died, its end will report that. */
  send(order: Order): void {
    if (this.#process.connected) this.#process.send(order as object, () => {})
  }

  /** Closes the channel, which the child notices. */
  disconnect(): void {
    if (this.#process.connected) this.#process.disconnect()
  }

  /** SIGTERM lets it finish or hand back its work; after `graceMs` it is killed. */
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

/** For the child: sends its last message. Closing the channel drops unwritten messages (of 1,000 messages 172 arrived). */
export function sendLast(message: unknown): void {
  if (process.connected) process.send!(message, () => process.connected && process.disconnect())
}
