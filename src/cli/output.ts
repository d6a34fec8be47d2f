/** What the commands that read share: their flags, text and JSON out, and a reader that goes away. */
import type { Command } from 'commander'
import { redactAll } from '../core/redact.ts'
import { redactText } from '../core/redact-text.ts'

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

/** The way to standard output. Nothing that looks like a secret gets past it, whichever command prints. */
export function print(text: string): void {
  printData(redactText(text))
}

/** For data that was asked for, and for a new key or secret, which is shown only once: as it is. */
export function printData(text: string): void {
  leaveQuietly()
  process.stdout.write(text.endsWith('\n') ? text : `${text}\n`)
}

/** Without secrets; parts marked by `verbatim` stay as they are. */
export function printJson(value: unknown): void {
  printData(JSON.stringify(redactAll(value), null, 2))
}

/** One line of JSON, likewise. */
export function printJsonLine(value: unknown): void {
  printData(JSON.stringify(redactAll(value)))
}

/** The way to standard error: what is said beside the output, without secrets. */
export function note(text: string): void {
  const shown = redactText(text)
  process.stderr.write(shown.endsWith('\n') ? shown : `${shown}\n`)
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
