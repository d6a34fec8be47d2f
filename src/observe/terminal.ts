/** Text for a terminal: colours if enabled, width in columns, bars. */
import { stripVTControlCharacters, styleText } from 'node:util'
import { redactText } from '../core/redact-text.ts'

type Format = Parameters<typeof styleText>[0]

/** Colours a text, or returns it unchanged. */
export type Paint = (format: Format, text: string) => string

export const plain: Paint = (_format, text) => text
export const coloured: Paint = (format, text) => styleText(format, text, { validateStream: false })

export interface OutputStream {
  write(text: string): unknown
  readonly isTTY?: boolean
  readonly columns?: number
}

/** Whether the cursor can be moved. False for a pipe, a file and `TERM=dumb`. */
export function isTerminal(stream: OutputStream, env: NodeJS.ProcessEnv = process.env): boolean {
  return stream.isTTY === true && env['TERM'] !== 'dumb'
}

/** Colours on a terminal only; `NO_COLOR` (any value but empty) disables them, `FORCE_COLOR` enables them. */
export function paintFor(stream: OutputStream, env: NodeJS.ProcessEnv = process.env): Paint {
  if (env['NO_COLOR'] !== undefined && env['NO_COLOR'] !== '') return plain
  if (env['FORCE_COLOR'] !== undefined && env['FORCE_COLOR'] !== '')
    return env['FORCE_COLOR'] === '0' ? plain : coloured
  return isTerminal(stream, env) ? coloured : plain
}

/** East Asian wide characters and emoji take two columns, combining marks none. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u
const ZERO = /[\p{Mn}\p{Me}\p{Cf}]/u

function charWidth(char: string): number {
  if (char <= '~') return char >= ' ' ? 1 : 0
  if (ZERO.test(char)) return 0
  return WIDE.test(char) ? 2 : 1
}

/** Width of a text in columns, not counting colour codes. */
export function displayWidth(text: string): number {
  let width = 0
  for (const char of stripVTControlCharacters(text)) width += charWidth(char)
  return width
}

export function padEnd(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - displayWidth(text)))
}

export function padStart(text: string, columns: number): string {
  return ' '.repeat(Math.max(0, columns - displayWidth(text))) + text
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what it looks for
const ESCAPE = /\x1b\[[0-9;]*m/y

/** Cuts a text to `columns`, with `…` where something was removed; colour codes stay intact and are closed. */
export function truncate(text: string, columns: number): string {
  if (columns <= 0) return ''
  if (displayWidth(text) <= columns) return text
  let kept = ''
  let width = 0
  let hasColour = false
  for (let i = 0; i < text.length; ) {
    ESCAPE.lastIndex = i
    const colour = ESCAPE.exec(text)
    if (colour !== null) {
      kept += colour[0]
      i += colour[0].length
      hasColour = true
      continue
    }
    const char = String.fromCodePoint(text.codePointAt(i)!)
    const wide = charWidth(char)
    if (width + wide > columns - 1) break
    kept += char
    width += wide
    i += char.length
  }
  return `${kept}${hasColour ? '\x1b[0m' : ''}…`
}

/** Wraps a plain text between words into lines of at most `columns`; a longer word is cut. */
export function wrap(text: string, columns: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`
    if (line !== '' && displayWidth(longer) > columns) {
      lines.push(line)
      line = word
    } else line = longer
  }
  return [...lines, line].map((one) => truncate(one, columns))
}

/** Keeps both ends of a path or URL: `runs/books/…/items.jsonl`. */
export function truncateMiddle(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text
  const chars = [...text]
  const tail = Math.floor((columns - 1) * 0.6)
  const head = columns - 1 - tail
  return `${chars.slice(0, head).join('')}…${chars.slice(chars.length - tail).join('')}`
}

/** Makes untrusted text safe for a terminal: one line without control sequences or secrets. */
export function printable(text: string): string {
  return oneLine(redactText(stripVTControlCharacters(text)))
}

/** The same for requested data such as items, which are not redacted. */
export function printableData(text: string): string {
  return oneLine(stripVTControlCharacters(text))
}

/** Removes newlines, control characters, and bidirectional marks that reverse the text around them (U+202E). */
function oneLine(text: string): string {
  return (
    text
      .replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it removes
      .replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ')
  )
}

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

/** `bar(0.57, 10)` → `█████▋    `: always exactly `columns` wide. */
export function bar(ratio: number, columns: number): string {
  const share = Number.isFinite(ratio) ? Math.min(1, Math.max(0, ratio)) : 0
  // Rounded down, so that a full bar means finished.
  const eighths = Math.floor(share * columns * 8)
  const text = '█'.repeat(Math.floor(eighths / 8)) + EIGHTHS[eighths % 8]
  return text.padEnd(columns)
}

/** How this command is called here: `bin/sluice` in a clone, `sluice` if installed. For commands shown to the user. */
export function self(env: NodeJS.ProcessEnv = process.env): string {
  return env['SLUICE_SELF'] ?? 'sluice'
}
