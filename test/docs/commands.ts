/**
 * The commands of a block, one by one: each must succeed, and one that cannot run here does not prevent the others from running.
 */
import { spawnSync } from 'node:child_process'
import type { Block } from './blocks.ts'

export interface Step {
  command: string
  /** Empty: any output is accepted. */
  output: string
}

export const commandsOf = ({ kind, text }: Block): Step[] =>
  kind === 'console' ? stepsOf(text) : linesOf(text).map((command) => ({ command, output: '' }))

/** `$ command`, its continuation lines after a backslash, and its output. */
export function stepsOf(text: string): Step[] {
  const steps: Step[] = []
  for (const line of text.trimEnd().split('\n')) {
    const last = steps.at(-1)
    if (line.startsWith('$ ')) steps.push({ command: line.slice(2), output: '' })
    else if (last === undefined) throw new Error(`a block of console begins with "$ ", not with: ${line}`)
    else if (last.command.endsWith('\\')) last.command += `\n${line}`
    else last.output += `${line}\n`
  }
  return steps
}

/** Lines, joined where a command continues: after a backslash, in quotes, in a loop or in a here-document. */
export function linesOf(script: string): string[] {
  const commands: string[] = []
  let open = ''
  for (const line of script.trimEnd().split('\n')) {
    open += open === '' ? line : `\n${line}`
    if (/^\s*(?:#.*)?$/.test(open)) open = ''
    else if (!open.endsWith('\\') && (!/['"`({|&]|<<|\b(?:do|then|else)$/.test(open) || syntaxProblem(open) === '')) {
      commands.push(open)
      open = ''
    }
  }
  return open === '' ? commands : [...commands, open]
}

/** What bash reports without running it; an unterminated here-document is only a warning there. */
export const syntaxProblem = (script: string) => spawnSync('bash', ['-n'], { input: script, encoding: 'utf8' }).stderr
