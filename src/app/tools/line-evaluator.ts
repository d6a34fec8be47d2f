/** Evaluates JavaScript line by line without a terminal, like Node's prompt: top-level `await`, statements over several lines. */
import { type REPLServer, start } from 'node:repl'
import { PassThrough, Writable } from 'node:stream'

/** more: the statement is incomplete · end: `.exit`. */
type Evaluated = { kind: 'value'; value: unknown } | { kind: 'error'; error: unknown } | { kind: 'more' | 'end' }

/** A prompt that output would never contain by itself. */
const PROMPT = '\u0001'
const MORE = /^(?:\| |\.\.\. )$/

/**
 * A real REPL without a user. Its `eval` alone is not enough: on an error it never calls back (the error goes to a domain). The
 * output shows how a line ended: the prompt, with or without `Uncaught` before it, or the mark of an incomplete statement.
 */
export class LineEvaluator implements Disposable {
  readonly #server: REPLServer
  readonly #input = new PassThrough()
  #written = ''
  #last: unknown
  #settle: (how: Evaluated) => void = () => {}

  constructor(names: PropertyDescriptorMap) {
    const output = new Writable({
      write: (chunk, _encoding, done) => {
        this.#onOutput(String(chunk))
        done()
      },
    })
    this.#server = start({
      input: this.#input,
      output,
      terminal: false,
      prompt: PROMPT,
      writer: (value) => {
        this.#last = value
        return ''
      },
    })
    this.#server.once('exit', () => this.#settle({ kind: 'end' }))
    Object.defineProperties(this.#server.context, { ...names, console: { value: console, configurable: true } })
    this.#written = ''
  }

  async evaluate(line: string): Promise<Evaluated> {
    const { promise, resolve } = Promise.withResolvers<Evaluated>()
    this.#written = ''
    this.#last = undefined
    this.#settle = resolve
    this.#input.write(`${line}\n`)
    const how = await promise
    if (how.kind !== 'value') return how
    try {
      return { kind: 'value', value: await how.value } // promises are awaited, with or without `await` in the line
    } catch (error) {
      return { kind: 'error', error }
    }
  }

  #onOutput(text: string): void {
    this.#written += text
    if (MORE.test(this.#written)) this.#settle({ kind: 'more' })
    else if (!this.#written.endsWith(PROMPT)) return
    else if (this.#written.startsWith('Uncaught')) this.#settle({ kind: 'error', error: this.#last })
    else this.#settle({ kind: 'value', value: this.#last })
  }

  [Symbol.dispose](): void {
    this.#server.close()
  }
}
