/** Shared by the commands that print: their flags, output as text and JSON, and a closed pipe. */
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
    .option('--quiet', 'print only errors')
    .option('-v, --verbose', 'print stack traces')
}

/** Prints to standard output with secrets masked. Every command prints through here. */
export function print(text: string): void {
  printData(redactText(text))
}

/** Prints unchanged: for requested data, and for a new key or secret, which is shown only once. */
export function printData(text: string): void {
  leaveQuietly()
  process.stdout.write(text.endsWith('\n') ? text : `${text}\n`)
}

/** With secrets masked; parts marked by `verbatim` stay as they are. */
export function printJson(value: unknown): void {
  printData(JSON.stringify(redactAll(value), null, 2))
}

/** The same, on one line. */
export function printJsonLine(value: unknown): void {
  printData(JSON.stringify(redactAll(value)))
}

/** Prints messages to standard error, with secrets masked. */
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

/** A word quoted for the shell. */
export function shellWord(word: string): string {
  return /^[\w./@:=,+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
