/** What the commands that read share: their flags, JSON out, and a reader that goes away. */
import type { Command } from 'commander'

export interface ReadFlags {
  json?: boolean
  quiet?: boolean
  verbose?: boolean
}

export function addReadFlags(command: Command, jsonOf: string): Command {
  return command
    .option('--json', `print ${jsonOf} as JSON`)
    .option('--quiet', 'print nothing but errors')
    .option('-v, --verbose', 'show stacks of errors')
}

/** Text ends with one newline. `| head` closes the pipe early, which is no error of anybody. */
export function print(text: string): void {
  leaveQuietly()
  process.stdout.write(text.endsWith('\n') ? text : `${text}\n`)
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, 2))
}

let isHooked = false

function leaveQuietly(): void {
  if (isHooked) return
  isHooked = true
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit()
  })
}

/** A word as the shell takes it. */
export function shellWord(word: string): string {
  return /^[\w./@:=,+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
