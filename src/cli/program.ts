/** The command line itself. Each command is one file; what it needs is loaded when it runs. */
import { Command, CommanderError } from 'commander'
import { VERSION } from '../config/user-agent.ts'
import { didYouMean } from '../core/did-you-mean.ts'
import { defineCommands, helpCommand, subcommandTerm } from './commands.ts'
import { note, print } from './output.ts'
import { errorText, exitCodeOf } from './print-error.ts'
import { paintFor } from './style.ts'
import { wrapParagraphs } from './wrap.ts'

const program = new Command('sluice')
  .description('Web scraping that resumes: from one laptop to a fleet, with no item lost or duplicated.')
  .version(VERSION, '-V, --version', 'print the version')
  .helpOption('-h, --help', 'print this help')
  .addHelpCommand(helpCommand())
  .configureHelp({ sortSubcommands: false, subcommandTerm, minWidthToWrap: 24 })
  .showSuggestionAfterError(true)
  .configureOutput({
    outputError: (text, write) => write(usageError(text)),
    writeOut: (text) => print(wrapParagraphs(text, process.stdout.columns ?? 80).replace(/\n$/, '')),
  })
  .exitOverride()

// `| head` goes away in the middle: then there is no one to print for. Without standard error a run still continues.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit()
})
process.stderr.on('error', () => {})

await defineCommands(program, process.argv[2])
for (const command of program.commands) command.exitOverride()

/** What is left to be printed gets this long. */
const LEAVE_MS = 500

/** Exit codes: 0 fine · 1 over a threshold · 2 usage · 3 service unreachable · 4 stopped, resumable · 130 second Ctrl-C. */
async function main(argv: string[]): Promise<number> {
  try {
    await program.parseAsync(argv)
    return typeof process.exitCode === 'number' ? process.exitCode : 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    const verbose = argv.includes('-v') || argv.includes('--verbose')
    note(`${errorText(error, { verbose, paint: paintFor(process.stderr) })}`)
    return exitCodeOf(error)
  }
}

/** What the parser of the command line finds, in the words and shape of all our errors. */
function usageError(text: string): string {
  const [what, ...rest] = text
    .trim()
    .replace(/^error: /, '')
    .split('\n')
  const word = process.argv[2]
  const about = program.commands.some((command) => command.name() === word) ? ` ${word}` : ''
  const notes = rest.map((line) => `  ${line.trim()}\n`).join('')
  return `error E_USAGE  ${what}\n${notes}  fix: sluice help${about}\n`
}

program.on('command:*', ([word]: [string]) => {
  const known = program.commands.map((command) => command.name())
  const near = didYouMean(word, known)
  const hint = near === undefined ? '' : `\n(Did you mean ${near}?)`
  note(usageError(`there is no command "${word}"${hint}`))
  throw new CommanderError(2, 'sluice.unknownCommand', '')
})

process.exitCode = await main(process.argv)
// A handler that never ends must not keep a process that has drained: its result is no longer wanted.
if (['run', 'crawl', 'start', 'worker'].includes(process.argv[2] ?? ''))
  setTimeout(() => process.exit(), LEAVE_MS).unref()
