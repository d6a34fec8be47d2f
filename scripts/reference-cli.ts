/** docs/reference/cli.md: every command with its usage, flags and examples, from the program itself. */
import { Command, type Option } from 'commander'
import { defineCommands } from '../src/cli/commands.ts'
import { describeOption } from '../src/cli/flags.ts'
import { EXIT_CODES } from '../src/cli/print-error.ts'
import { markdownTable, NOTE, page, sentence } from './reference-text.ts'

export async function cliPage(): Promise<string> {
  const program = new Command('sluice').configureHelp({ sortSubcommands: false })
  await defineCommands(program, undefined)
  return page([
    '# Commands',
    NOTE,
    'The same as `sluice help COMMAND` prints. Options that have a variable of the environment are in [options](options.md).',
    markdownTable(
      ['command', 'what it does'],
      program.commands.map((command) => [
        `[\`${command.name()}\`](#sluice-${command.name()})`,
        sentence(command.description()),
      ]),
    ),
    '## Exit codes',
    markdownTable(
      ['code', 'meaning'],
      Object.entries(EXIT_CODES).map(([code, text]) => [`\`${code}\``, text]),
    ),
    ...program.commands.flatMap((command) => sectionsOf(command, 'sluice', 2)),
  ])
}

function sectionsOf(command: Command, path: string, level: number): string[] {
  const name = `${path} ${command.name()}`
  const flags = command.options.filter(({ hidden }) => !hidden)
  return [
    `${'#'.repeat(level)} ${name}`,
    sentence(command.description()),
    `Usage: **${name}** \`${command.usage().replace(/ ?\[command\]$/, ' COMMAND')}\``,
    ...(flags.length === 0 ? [] : [markdownTable(['flag', 'what it does'], flags.map(flagRow))]),
    ...notesOf(command),
    ...command.commands.flatMap((inner) => sectionsOf(inner, name, level + 1)),
  ]
}

const flagRow = (option: Option) => [`\`${option.flags}\``, sentence(describeOption(option))]

/** The text after the flags in the help: notes, and examples. */
function notesOf(command: Command): string[] {
  let text = ''
  const help = command.createHelp().formatHelp(command, command.createHelp())
  command.configureOutput({
    writeOut: (part) => {
      text += part
    },
  })
  command.outputHelp()
  const after = text.slice(help.length).trim()
  if (after === '') return []
  const [notes = '', examples] = after.split(/^Examples:$/m)
  const blocks = notes.trim() === '' ? [] : [`\`\`\`text\n${notes.trim()}\n\`\`\``]
  if (examples !== undefined)
    blocks.push('Examples:', `\`\`\`text\n${examples.replaceAll(/^ {2}/gm, '').trim()}\n\`\`\``)
  return blocks
}
