/** What the block check needs to know about a body: its first 64 kB in lower case, its title, and its visible text. */

/** Block pages are small; anything further down is content. */
export const LOOKED_AT_BYTES_MAX = 64 * 1024
/** A page with this much visible text is a real page. */
const THIN_CHARS_MAX = 1500

/** Elements whose content is not visible text. */
const HIDDEN = /<(script|style|noscript|template|svg|title|textarea|iframe)\b/iy
/** The first letters of their names; checked first, because most tags are not among them. */
const HIDDEN_STARTS: ReadonlySet<number> = new Set(['sc', 'st', 'no', 'te', 'sv', 'ti', 'if'].map(pairOf))
const LESS_THAN = 0x3c
const SPACE = 0x20
/** A page full of links has little text but is still a page: each link counts as this many characters. */
const LINK_CHARS = 50

export class BodyText {
  /** The size of the whole body. */
  readonly bytes: number
  readonly #body: string | Buffer
  #raw: string | undefined
  #text: string | undefined
  #title: string | undefined
  #visible: string | undefined
  #isThin: boolean | undefined

  constructor(body: string | Buffer) {
    this.#body = body
    this.bytes = body.length
  }

  /** Bytes as Latin-1: we only look for ASCII, and this is the fastest way to get a string. */
  get text(): string {
    this.#text ??= this.#start().toLowerCase()
    return this.#text
  }

  get title(): string {
    this.#title ??= titleOf(this.text)
    return this.#title
  }

  /** At most `THIN_CHARS_MAX` characters of it. */
  get visible(): string {
    this.#visible ??= visibleText(this.text, THIN_CHARS_MAX)
    return this.#visible
  }

  get isThin(): boolean {
    this.#isThin ??= !isTalkative(this.#start())
    return this.#isThin
  }

  get isEmpty(): boolean {
    const { text } = this
    if (this.bytes > 4096) return false
    if (text.trim() === '') return true
    return (
      text.includes('<html') &&
      this.visible === '' &&
      !/<(?:script|img|svg|i?frame|video|canvas|link|input|button|a)\b/.test(text)
    )
  }

  #start(): string {
    const body = this.#body
    this.#raw ??=
      typeof body === 'string' ? body.slice(0, LOOKED_AT_BYTES_MAX) : body.toString('latin1', 0, LOOKED_AT_BYTES_MAX)
    return this.#raw
  }
}

function titleOf(text: string): string {
  const tag = text.indexOf('<title')
  const start = tag === -1 ? -1 : text.indexOf('>', tag)
  if (start === -1) return ''
  const end = text.indexOf('<', start)
  const title = text.slice(start + 1, Math.min(end === -1 ? text.length : end, start + 300))
  return title.replace(/\s+/g, ' ').trim()
}

/** Whether there is much visible text. Only counts, as every page pays for it: 11 µs for a small one; joining words took 74. */
function isTalkative(text: string): boolean {
  let chars = 0
  for (let at = 0; at < text.length && chars < THIN_CHARS_MAX; ) {
    const code = text.charCodeAt(at)
    if (code === LESS_THAN) {
      if (pairAt(text, at + 1) === LINK) chars += LINK_CHARS
      at = afterTag(text, at)
      continue
    }
    if (code > SPACE || (code === SPACE && text.charCodeAt(at + 1) > SPACE)) chars++
    at++
  }
  return chars >= THIN_CHARS_MAX
}

const LINK = pairOf('a ')

/** Two letters as one number, ignoring case. */
function pairAt(text: string, at: number): number {
  return ((text.charCodeAt(at) | 0x20) << 8) | (text.charCodeAt(at + 1) | 0x20)
}

function pairOf(letters: string): number {
  return pairAt(letters, 0)
}

/** Reads each character once, whatever is left unclosed. */
function visibleText(text: string, charsMax: number): string {
  let visible = ''
  for (let at = 0; at < text.length && visible.length < charsMax; ) {
    const open = text.indexOf('<', at)
    const end = open === -1 ? text.length : open
    if (end > at) {
      const words = text.slice(at, end).replace(/\s+/g, ' ').trim()
      if (words !== '' && words !== '&nbsp;') visible += visible === '' ? words : ` ${words}`
    }
    at = open === -1 ? text.length : afterTag(text, open)
  }
  return visible.slice(0, charsMax)
}

/** Where the text continues after a tag, a comment, or an element whose content is hidden. */
function afterTag(text: string, open: number): number {
  if (text.charCodeAt(open + 1) === 0x21 && text.startsWith('<!--', open)) return after(text, '-->', open + 4)
  if (HIDDEN_STARTS.has(pairAt(text, open + 1))) {
    HIDDEN.lastIndex = open
    const name = HIDDEN.exec(text)?.[1]
    if (name !== undefined) return after(text, '>', closeOf(text, name.toLowerCase(), open))
  }
  return after(text, '>', open)
}

function closeOf(text: string, name: string, open: number): number {
  for (let at = text.indexOf('</', open); at !== -1; at = text.indexOf('</', at + 2)) {
    if (text.slice(at + 2, at + 2 + name.length).toLowerCase() === name) return at
  }
  return text.length
}

function after(text: string, mark: string, from: number): number {
  const found = text.indexOf(mark, from)
  return found === -1 ? text.length : found + mark.length
}
