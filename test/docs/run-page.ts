/**
 * Runs a page of the docs, in order.
 *
 *   ```sh, ```sh exit=4       each command is run in bash and must exit with 0, the last one with this code
 *   ```console                the same for each `$ command`, and the text below it must be printed
 *   ```text after them        each line must be printed, in this order; `…` matches anything
 *   ```ts                     run by Node, unless a hidden `with:` says that it is a part of something
 *   ```ts PATH, ```json PATH  written to PATH (any kind with a path)
 *   ```diff PATH              the `-` line is replaced by the `+` line
 *
 * Comments that readers do not see:
 *   <!-- before: … -->        commands the page needs before it can continue
 *   <!-- with: a … b -->      the TypeScript block replaces `…`, for the compiler
 *   <!-- picture -->          text that no command prints
 *   <!-- peer -->             code of another product: parsed, not run
 *   <!-- checked only: why -->  commands that cannot run here; NOT_RUN in not-run.ts covers most of them
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Block, missingLine } from './blocks.ts'
import { commandsOf, type Step, syntaxProblem } from './commands.ts'
import { missingTargets, whyNotRun } from './not-run.ts'
import { ROOT, Shell } from './shell.ts'
import { StandIns } from './stand-ins.ts'

export interface PageReport {
  page: string
  run: number
  /** Reason → number of commands. */
  checkedOnly: Map<string, number>
  problems: string[]
}

/** Continues after a problem with the next block, so that all of them are reported at once. */
export async function runPage(page: string, blocks: readonly Block[], site: string): Promise<PageReport> {
  const all = blocks.map(({ text }) => text).join('\n')
  await using standIns = await StandIns.for(all, site)
  await using shell = new Shell(standIns.env)
  const runner = new PageRunner(page, standIns, shell)
  shell.write('scrapers/shop/shop.ts', exampleFor(site))
  for (const block of blocks) await runner.do(block)
  runner.report.problems.push(...shell.died())
  return runner.report
}

/** The reader's own scraper, unless the page says otherwise. */
const exampleFor = (site: string) =>
  readFileSync(join(ROOT, 'docs/examples/shop.ts'), 'utf8').replace('z.url() })', () => `z.url().default('${site}') })`)

class PageRunner {
  readonly report: PageReport
  readonly #standIns: StandIns
  readonly #shell: Shell
  /** The output of the previous block; undefined if it had no commands, or not all of them were run. */
  #output: string | undefined

  constructor(page: string, standIns: StandIns, shell: Shell) {
    this.report = { page, run: 0, checkedOnly: new Map(), problems: [] }
    this.#standIns = standIns
    this.#shell = shell
  }

  async do(block: Block): Promise<void> {
    const { kind, word, text } = block
    if (kind === 'diff') this.#shell.write(word, changed(this.#shell.read(word), text))
    else if (/^[\w./-]+\.\w+$/.test(word)) this.#shell.write(word, this.#standIns.inPlaceOf(text))
    else if (kind === 'sh' || kind === 'console') await this.#commands(block)
    else if (kind === 'ts' && block.context === undefined) await this.#program(block)
    else if (kind === 'text' && !block.isPicture && this.#output !== undefined)
      this.#compare(block, this.#output, this.#standIns.inPlaceOf(text))
  }

  async #commands(block: Block): Promise<void> {
    this.#output = ''
    const steps = commandsOf(block)
    for (const step of steps) {
      for (const target of missingTargets(step.command)) this.#problem(block, `no target of the Makefile: ${target}`)
      const syntax = syntaxProblem(step.command)
      if (syntax !== '') this.#problem(block, syntax)
      const why = block.notRun ?? whyNotRun(step.command)
      if (why === undefined) await this.#command(block, step, step === steps.at(-1))
      else {
        this.report.checkedOnly.set(why, (this.report.checkedOnly.get(why) ?? 0) + 1)
        this.#output = undefined
      }
    }
  }

  async #command(block: Block, { command, output: expected }: Step, isLast: boolean): Promise<void> {
    const wanted = this.#standIns.inPlaceOf(expected)
    const hasSaidIt = (printed: string) =>
      printed !== '' && (expected === '' || missingLine(printed, wanted) === undefined)
    const { code, output } = await this.#shell.run(this.#standIns.inPlaceOf(command), hasSaidIt)
    this.report.run++
    this.#standIns.hear(output)
    if (this.#output !== undefined) this.#output += output
    const expectedCode = isLast ? Number(/exit=(\d+)/.exec(block.word)?.[1] ?? 0) : 0
    if (code !== expectedCode) this.#problem(block, `ended with ${code}: ${command}\n${output}`)
    else if (expected !== '') this.#compare(block, output, this.#standIns.inPlaceOf(expected))
  }

  async #program(block: Block): Promise<void> {
    const path = `block-${block.line}.ts`
    this.#shell.write(path, this.#standIns.inPlaceOf(block.text))
    this.report.run++
    const { code, output } = await this.#shell.run(`node --disable-warning=ExperimentalWarning ${path}`)
    this.#output = output
    if (code !== 0) this.#problem(block, `ended with ${code}\n${output}`)
  }

  #compare(block: Block, output: string, expected: string): void {
    const missing = missingLine(output, expected)
    if (missing !== undefined)
      this.#problem(block, `not shown, or not in this order: ${missing}\n--- output:\n${output}`)
  }

  #problem({ page, line }: Block, text: string): void {
    this.report.problems.push(`${page}:${line}: ${text}`)
  }
}

function changed(before: string, diff: string): string {
  const [, from, to] = /^-(.*)\n\+(.*)\n$/.exec(diff) ?? []
  if (from === undefined || to === undefined) throw new Error(`one line out, one line in: ${diff}`)
  if (before.split(`${from}\n`).length !== 2) throw new Error(`the line is there once: ${from}`)
  return before.replace(`${from}\n`, () => `${to}\n`)
}
