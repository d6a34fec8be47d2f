/** The HTML of a description: repaired, truncated, and converted to readable text. */
import { Parser } from 'htmlparser2'

/** Maximum size of a stored description, in UTF-8. */
export const DESCRIPTION_BYTES_MAX = 65_536
/** Anything beyond this is ignored. Markup is a few times the size of its text. */
const HTML_CHARS_MAX = 1_048_576

const BLOCKS = new Set(
  'address article aside blockquote dd div dl dt fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr main nav ol p pre section table tr ul'.split(
    ' ',
  ),
)
const HIDDEN = new Set([
  'script',
  'style',
  'noscript',
  'template',
  'head',
  'title',
  'iframe',
  'object',
  'svg',
  'textarea',
])

const encoder = new TextEncoder()
const room = new Uint8Array(DESCRIPTION_BYTES_MAX)

/** The start of a text, as much as fits in UTF-8. */
export function cutText(text: string): string {
  if (text.length * 3 <= DESCRIPTION_BYTES_MAX) return text
  const { read } = encoder.encodeInto(text, room)
  return read === text.length ? text : text.slice(0, read)
}

/** The same for HTML: never cuts inside a tag. */
export function cutHtml(html: string): string {
  const cut = cutText(html)
  if (cut.length === html.length) return html
  const open = cut.lastIndexOf('<')
  return open > cut.lastIndexOf('>') ? cut.slice(0, open) : cut
}

const TAG = /<\/?[a-z]/i
const ESCAPED_TAG = /&lt;\/?[a-z]/i
/** Double-escaped line breaks and no-break spaces, a common mistake on career sites. */
const ESCAPED_ENTITY = /&amp;(#x?[0-9a-f]{1,6}|nbsp|amp|lt|gt|quot|apos);/gi

/** HTML as intended: some boards escape its tags, some escape entities twice. */
export function repairHtml(html: string): string {
  const short = html.slice(0, HTML_CHARS_MAX)
  const plain = !TAG.test(short) && ESCAPED_TAG.test(short) ? decodeEntities(short) : short
  return plain.includes('&amp;') ? plain.replace(ESCAPED_ENTITY, '&$1;') : plain
}

/** `&euro;` → `€`, once. Tags are removed. */
export function decodeEntities(text: string): string {
  if (!text.includes('&')) return text
  let out = ''
  const parser = new Parser({
    ontext: (piece) => {
      out += piece
    },
  })
  parser.end(text)
  return out
}

/** Readable text: one line per block and list item, at most one empty line in between, runs of spaces collapsed. */
export function htmlToText(html: string): string {
  const lines = new Lines()
  let hidden = 0
  const parser = new Parser({
    onopentagname(name) {
      if (HIDDEN.has(name)) hidden++
      else if (name === 'br') lines.end()
      else if (name === 'li') lines.item()
      else if (BLOCKS.has(name)) lines.block()
      else if (name === 'td' || name === 'th') lines.add(' ')
    },
    ontext(text) {
      if (hidden === 0) lines.add(text)
    },
    onclosetag(name) {
      if (HIDDEN.has(name)) hidden = Math.max(0, hidden - 1)
      else if (name === 'li') lines.end()
      else if (BLOCKS.has(name)) lines.block()
    },
  })
  parser.end(html.slice(0, HTML_CHARS_MAX))
  return cutText(lines.text())
}

const SPACES = /[\s\u00a0\u200b\ufeff]+/g

/** Collects text into lines. */
class Lines {
  #lines: string[] = []
  #parts: string[] = []
  #isGapDue = false

  add(text: string): void {
    this.#parts.push(text)
  }

  end(): void {
    const line = this.#parts.join('').replace(SPACES, ' ').trim()
    this.#parts = []
    if (line === '' || line === '-') return
    if (this.#isGapDue && this.#lines.length > 0) this.#lines.push('')
    this.#isGapDue = false
    this.#lines.push(line)
  }

  block(): void {
    this.end()
    this.#isGapDue = true
  }

  item(): void {
    this.end()
    this.#isGapDue = false
    this.add('- ')
  }

  text(): string {
    this.end()
    return this.#lines.join('\n')
  }
}

/** Plain text from a board: line breaks kept, other runs of spaces collapsed, at most one empty line in a row. */
export function tidyText(text: string): string {
  const lines: string[] = []
  for (const line of text.slice(0, HTML_CHARS_MAX).split(/\r\n|\r|\n/)) {
    const tidy = line.replace(SPACES, ' ').trim()
    if (tidy !== '' || (lines.length > 0 && lines.at(-1) !== '')) lines.push(tidy)
  }
  if (lines.at(-1) === '') lines.pop()
  return cutText(lines.join('\n'))
}
