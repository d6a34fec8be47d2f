/** `sluice shell`: a prompt with a loaded page, to find selectors before they go into a scraper. */
import { inspect } from 'node:util'
import type { Command } from 'commander'
import type { PageShell } from '../app/tools/page-shell.ts'
import type { OptionName } from '../config/option-table.ts'
import { ScrapeError } from '../core/errors.ts'
import { addOptions, configOf } from './flags.ts'
import { note, printData } from './output.ts'
import { errorText } from './print-error.ts'
import { formatBytes, paintFor, plain, printable } from './style.ts'

const OPTIONS: OptionName[] = ['timeout', 'bodyMax', 'robots', 'contact', 'userAgent', 'allowPrivate', 'allowAddress']

interface ShellFlags {
  expression?: string
  base?: string
  json?: boolean
  quiet?: boolean
  verbose?: boolean
}

const HELP = `
At the prompt:
  $             the page, as handlers have it: $.text('h1'), $.all('a').length, $.attr('img', 'src'), $.cheerio('p')
  html, url     its text and its URL; page has status, headers and timings
  json()        its body as JSON
  links(css)    the URLs it links to; without css, all of them
  fetch(url)    opens another page (relative URLs too); await it

With a pipe on standard input every line is evaluated and its value printed; -e evaluates one expression.

Examples:
  sluice shell https://books.toscrape.com/
  sluice shell saved.html --base https://shop.example/
  sluice shell https://books.toscrape.com/ -e "$.all('h3 a').map((a) => a.ownAttr('title'))" --json`

export function defineShell(program: Command): void {
  const command = program
    .command('shell <url>')
    .description('try selectors on a page (a URL or a saved file) interactively')
    .option('-e, --expression <code>', 'evaluate this expression, print the result and exit')
    .option('--base <URL>', 'URL that a saved file came from, to resolve its links')
    .option('--json', 'print values as JSON')
    .option('--quiet', 'no greeting')
    .option('-v, --verbose', 'print stack traces')
    .addHelpText('after', HELP)
    .action(async (url: string, flags: ShellFlags) => {
      process.exitCode = await shell(url, flags)
    })
  addOptions(command, OPTIONS)
}

async function shell(given: string, flags: ShellFlags): Promise<number> {
  const { openPageShell } = await import('../app/tools/page-shell.ts')
  const config = await configOf(flags as Record<string, unknown>)
  await using session = await openPageShell({ target: given, base: flags.base, config })
  const options = {
    isJson: flags.json === true,
    isQuiet: flags.quiet === true,
    isVerbose: flags.verbose === true,
  }
  if (flags.expression !== undefined) return await evaluateLines(session, flags.expression.split('\n'), options)
  if (process.stdin.isTTY) return await interact(session, options)
  const { createInterface } = await import('node:readline')
  return await evaluateLines(session, createInterface({ input: process.stdin }), options)
}

interface PromptOptions {
  isJson: boolean
  isQuiet: boolean
  isVerbose: boolean
}

/** Evaluates each line and prints its value. An error is printed and the next line continues; the exit code reflects it. */
async function evaluateLines(
  session: PageShell,
  lines: Iterable<string> | AsyncIterable<string>,
  options: PromptOptions,
): Promise<number> {
  const { LineEvaluator } = await import('../app/tools/line-evaluator.ts')
  warnAboutPage(session, options)
  using evaluator = new LineEvaluator(session.names)
  let exitCode = 0
  let isOpen = false
  const complain = (error: unknown) => {
    exitCode = 1
    note(`${problemText(error, options)}`)
  }
  for await (const line of lines) {
    const result = await evaluator.evaluate(line)
    isOpen = result.kind === 'more'
    if (result.kind === 'end') break
    if (result.kind === 'error') complain(result.error)
    const text = result.kind === 'value' ? valueText(result.value, options) : undefined
    if (text !== undefined) printData(text)
  }
  if (isOpen) complain(new SyntaxError('the last line is not finished'))
  return exitCode
}

async function interact(session: PageShell, options: PromptOptions): Promise<number> {
  warnAboutPage(session, options)
  if (!options.isQuiet) process.stdout.write(greeting(session))
  const { start } = await import('node:repl')
  const server = start({ prompt: '> ', ignoreUndefined: true, writer: (value) => terminalText(value, options) })
  Object.defineProperties(server.context, session.names)
  await new Promise<void>((resolve) => server.once('exit', resolve))
  return 0
}

function terminalText(value: unknown, options: PromptOptions): string {
  if (value instanceof Error) return problemText(value, options)
  if (options.isJson) return JSON.stringify(value, null, 2) ?? 'undefined'
  return inspect(value, {
    colors: paintFor(process.stdout) !== plain,
    depth: 4,
    maxArrayLength: 50,
    maxStringLength: 2000,
  })
}

/** Text unchanged, so that it can be piped; everything else as JavaScript. */
function valueText(value: unknown, { isJson }: PromptOptions): string | undefined {
  if (value === undefined) return undefined
  if (isJson) return JSON.stringify(value, null, 2)
  return typeof value === 'string' ? value : inspect(value, { depth: 6, maxArrayLength: 1000, maxStringLength: 10_000 })
}

/** Errors of the page and the site as everywhere; those of the line itself in one line. */
function problemText(error: unknown, { isVerbose }: PromptOptions): string {
  const paint = paintFor(process.stderr)
  if (error instanceof ScrapeError) return errorText(error, { paint, verbose: isVerbose })
  // An error thrown by the line comes from another realm, so it is not an instance of our Error.
  const { name = 'Error', message = String(error), stack } = (error ?? {}) as Partial<Error>
  return `${paint(['red', 'bold'], 'error')}  ${printable(`${name}: ${message}`)}${isVerbose && stack ? `\n${stack}` : ''}`
}

function warnAboutPage({ current }: PageShell, { isQuiet }: PromptOptions): void {
  if (current.error !== undefined && !isQuiet)
    note(`${paintFor(process.stderr)('yellow', `the page has status ${current.page?.status}`)}\n`)
}

function greeting({ current }: PageShell): string {
  const paint = paintFor(process.stdout)
  const { page, $, html } = current
  const title = $.text('title', { optional: true })
  const head = [page?.status, current.url, formatBytes(page?.bytes.decoded ?? html.length)].filter(Boolean).join('  ')
  return [
    paint('bold', printable(head)),
    ...(title === undefined ? [] : [`“${printable(title)}”`]),
    paint('dim', "$.text('h1') · $.all('a') · html · url · page · json() · links() · await fetch(url) · .exit"),
    '',
  ].join('\n')
}
