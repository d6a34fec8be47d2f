/** JavaScript line by line without a terminal, as Node's prompt understands it: `await` at the top, statements over many lines. */
import { type REPLServer, start } from 'node:repl'
import { PassThrough, Writable } from 'node:stream'

/** more: the statement is not finished yet · end: `.exit`. */
type Evaluated = { kind: 'value'; value: unknown } | { kind: 'error'; error: unknown } | { kind: 'more' | 'end' }

/** What the prompt would print, and would never print by itself. */
const PROMPT = '\u0001'
const MORE = /^(?:\| |\.\.\. )$/

/**
 * A real REPL with nobody at it. Its `eval` alone would not do: on an error it never calls back (the error goes to a domain).
 * What it writes says how a line ended: the prompt after `Uncaught` or not, or the mark of a line that goes on.
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
      return { kind: 'value', value: await how.value } // a promise is waited for, whether somebody wrote `await` or not
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
