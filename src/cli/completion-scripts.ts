/** Completion scripts for three shells, from one description of the commands. */
import type { Argument, Command, Option } from 'commander'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof SHELLS)[number]

/** What may be completed: words, files, folders, names looked up on demand, or anything. */
type Values = { words: string[] } | 'file' | 'folder' | 'scraper' | 'any'

interface FlagSpec {
  names: string[]
  describe: string
  /** Undefined when it takes no value. */
  values: Values | undefined
}

interface CommandSpec {
  /** `''` for the program itself, `dlq list` for a subcommand. */
  path: string
  describe: string
  /** Names and descriptions of its subcommands. */
  parts: [name: string, describe: string][]
  flags: FlagSpec[]
  values: Values
}

export function describeCommands(program: Command): CommandSpec[] {
  const visit = (command: Command, path: string): CommandSpec[] => [
    {
      path,
      describe: firstSentence(command.description()),
      parts: command.commands.map((part) => [part.name(), firstSentence(part.description())]),
      flags: [...command.options.filter((option) => !option.hidden).map(flagOf), HELP_FLAG],
      values: argumentValues(command.registeredArguments[0]),
    },
    ...command.commands.flatMap((part) => visit(part, `${path} ${part.name()}`.trim())),
  ]
  return visit(program, '')
}

const HELP_FLAG: FlagSpec = { names: ['--help'], describe: 'print the help', values: undefined }

function firstSentence(text: string): string {
  return text.split(/[:;] /)[0]!
}

function flagOf(option: Option): FlagSpec {
  const names = [option.long, option.short].filter((name) => name != null)
  const isValued = option.required // an optional value may be omitted, so anything may follow
  return { names, describe: firstSentence(option.description), values: isValued ? optionValues(option) : undefined }
}

/** `<jsonl|csv>` lists its words, `<FILE>` and `<DIR>` name their kind. */
function optionValues({ flags, argChoices }: Option): Values {
  if (argChoices !== undefined) return { words: argChoices }
  const value = /[<[](.+)[>\]]/.exec(flags)?.[1] ?? ''
  if (/^[a-z-]+(\|[a-z-]+)+$/.test(value)) return { words: value.split('|') }
  if (flags.startsWith('--format')) return { words: ['jsonl', 'csv', 'parquet', 'dual'] }
  if (flags.startsWith('--scraper')) return 'scraper'
  return value === 'DIR' ? 'folder' : value === 'FILE' ? 'file' : 'any'
}

function argumentValues(argument: Argument | undefined): Values {
  switch (argument?.name()) {
    case 'scraper':
    case 'run': // a run may be named by its scraper
    case 'run-before':
      return 'scraper'
    case 'folder':
      return 'folder'
    case 'shell':
      return { words: [...SHELLS] }
    default:
      return 'any'
  }
}

export function completionScript(shell: Shell, commands: CommandSpec[]): string {
  switch (shell) {
    case 'bash':
      return bashScript(commands)
    case 'zsh':
      return zshScript(commands)
    case 'fish':
      return fishScript(commands)
    default:
      return shell satisfies never
  }
}

const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
const NAMES = 'list --names 2>/dev/null'

/** Which command the words before the cursor name. */
function pathCases(commands: CommandSpec[], variable: string): string[] {
  return commands.flatMap(({ path, parts }) =>
    parts.map(([name]) => `      ${quote(`${path}/${name}`)}) ${variable}=${quote(`${path} ${name}`.trim())} ;;`),
  )
}

/** The completions after a flag that takes a value; none if only the user can know it. */
function flagCases(commands: CommandSpec[], reply: (values: Values) => string): string[] {
  const places = new Map<string, string[]>()
  for (const { path, flags } of commands) {
    for (const { names, values } of flags) {
      if (values === undefined) continue
      const action = values === 'any' ? 'return' : `${reply(values)}; return`
      places.set(action, [...(places.get(action) ?? []), ...names.map((name) => quote(`${path}/${name}`))])
    }
  }
  return [...places].map(([action, patterns]) => `    ${patterns.join('|')}) ${action} ;;`)
}

function bashScript(commands: CommandSpec[]): string {
  const reply = (values: Values): string => {
    if (values === 'file') return 'COMPREPLY=($(compgen -f -- "$cur"))'
    if (values === 'folder') return 'COMPREPLY=($(compgen -d -- "$cur"))'
    if (values === 'scraper')
      return `COMPREPLY=($(compgen -W "$("$1" ${NAMES})" -- "$cur")); [[ $COMPREPLY ]] || COMPREPLY=($(compgen -f -- "$cur"))`
    if (values === 'any') return 'COMPREPLY=($(compgen -f -- "$cur"))'
    return `COMPREPLY=($(compgen -W ${quote(values.words.join(' '))} -- "$cur"))`
  }
  const valued = flagCases(commands, reply)
  const words = commands.map(({ path, flags, parts, values }) => {
    const flagWords = quote(flags.flatMap(({ names }) => names).join(' '))
    const other = parts.length > 0 ? reply({ words: parts.map(([name]) => name) }) : reply(values)
    return `    ${quote(path)}) if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W ${flagWords} -- "$cur")); else ${other}; fi ;;`
  })
  return `# bash completion of sluice; made by: sluice completion bash
_sluice() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} at='' word
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$at/$word" in
${pathCases(commands, 'at').join('\n')}
    esac
  done
  case "$at/$prev" in
${valued.join('\n')}
  esac
  case "$at" in
${words.join('\n')}
  esac
}
complete -o filenames -F _sluice sluice bin/sluice
`
}

function zshScript(commands: CommandSpec[]): string {
  const reply = (values: Values): string => {
    if (values === 'folder') return '_files -/'
    if (values === 'scraper') return `compadd -- \${(f)"$($words[1] ${NAMES})"}; _files`
    if (values === 'file' || values === 'any') return '_files'
    return `compadd -- ${values.words.map(quote).join(' ')}`
  }
  const described = (list: [string, string][]) =>
    list.map(([name, describe]) => quote(`${name.replaceAll(':', '\\:')}:${describe}`)).join(' ')
  const valued = flagCases(commands, reply)
  const cases = commands.map(({ path, flags, parts, values }) => {
    const flagList = described(
      flags.flatMap(({ names, describe }) => names.map((name): [string, string] => [name, describe])),
    )
    const other = parts.length > 0 ? `list=(${described(parts)}); _describe command list` : reply(values)
    return `    ${quote(path)}) if [[ $PREFIX == -* ]]; then list=(${flagList}); _describe flag list; else ${other}; fi ;;`
  })
  return `#compdef sluice
# zsh completion of sluice; made by: sluice completion zsh
_sluice() {
  local at='' word
  local -a list
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$at/$word" in
${pathCases(commands, 'at').join('\n')}
    esac
  done
  case "$at/$words[CURRENT-1]" in
${valued.join('\n')}
  esac
  case "$at" in
${cases.join('\n')}
  esac
}
if [[ $funcstack[1] == _sluice ]]; then _sluice; else compdef _sluice sluice; fi
`
}

function fishScript(commands: CommandSpec[]): string {
  const lines = commands.flatMap(({ path, flags, parts, values }) => {
    const when = `-n ${quote(condition(path, parts))}`
    const whenSeen = `-n ${quote(condition(path, []))}`
    return [
      ...parts.map(([name, describe]) => `complete -c sluice -f ${when} -a ${name} -d ${quote(describe)}`),
      ...flags.map((flag) => `complete -c sluice ${whenSeen} ${fishFlag(flag)} -d ${quote(flag.describe)}`),
      ...(values === 'scraper' ? [`complete -c sluice ${whenSeen} -a '(sluice ${NAMES})'`] : []),
      ...(typeof values === 'object' ? [`complete -c sluice -f ${whenSeen} -a ${quote(values.words.join(' '))}`] : []),
    ]
  })
  return `# fish completion of sluice; made by: sluice completion fish\n${lines.join('\n')}\n`
}

function condition(path: string, parts: [string, string][]): string {
  const seen = path
    .split(' ')
    .filter(Boolean)
    .map((name) => `__fish_seen_subcommand_from ${name}`)
  const unseen = parts.length > 0 ? [`not __fish_seen_subcommand_from ${parts.map(([name]) => name).join(' ')}`] : []
  return [...seen, ...unseen].join('; and ') || 'true'
}

function fishFlag({ names, values }: FlagSpec): string {
  const words = names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`)).join(' ')
  if (values === undefined) return words
  if (typeof values === 'object') return `${words} -x -a ${quote(values.words.join(' '))}`
  if (values === 'scraper') return `${words} -x -a '(sluice ${NAMES})'`
  return values === 'folder' ? `${words} -x -a '(__fish_complete_directories)'` : `${words} -r`
}
