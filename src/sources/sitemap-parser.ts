/** Parses the bytes of one sitemap, feed or list of URLs into entries. Tolerates what it can and reports the rest. */
import { SaxesParser, type SaxesTagPlain } from 'saxes'

export interface SitemapEntry {
  /** page: a page of the site · sitemap: another file to read. */
  kind: 'page' | 'sitemap'
  loc: string
  lastmod?: string
  priority?: string
  /** From Google's image extension. */
  images?: string[]
}

interface SitemapParser {
  write(chunk: Uint8Array): void
  end(): void
  /** The entries completed since the last call. */
  take(): SitemapEntry[]
  /** The rest of the file cannot be used. */
  readonly isStopped: boolean
}

/** Sitemaps are 3 levels deep, feeds 4 or 5; a million open tags are an attack on the memory. */
const DEPTH_MAX = 64
const TEXT_CHARS_MAX = 8192
/** The protocol's limit for one page. */
const IMAGES_MAX = 1000
/** Each costs the parser an Error with a stack trace (some 10 µs); a file of 50 MiB could contain 50 million. */
const FAULTS_MAX = 1000
/** Limit for the message of a fault, which may quote the file. */
const FAULT_CHARS_MAX = 200
/** The parser buffers comments, texts and attributes, and no entry is this long. */
const TAGLESS_CHARS_MAX = 1024 ** 2
const WEB_PAGE = 'a web page (HTML) instead of a sitemap'

export function createSitemapParser(onProblem: (message: string) => void): SitemapParser {
  let decoder: { decode(chunk?: Uint8Array, options?: { stream?: boolean }): string } | undefined
  let reader: Reader | undefined
  let entries: SitemapEntry[] = []
  let hasEntries = false
  let isStopped = false

  const emit = (entry: SitemapEntry) => {
    hasEntries = true
    entries.push(entry)
  }

  function attempt(step: () => void): void {
    try {
      step()
    } catch (error) {
      isStopped = true
      onProblem(`${(error as Error).message}; the rest is skipped`)
    }
  }

  function read(text: string): void {
    let rest = text
    if (reader === undefined) {
      rest = text.trimStart()
      if (rest === '') return // only white space so far
      if (/^<!doctype\s+html\b/i.test(rest)) throw new Error(WEB_PAGE) // the parser knows only the upper-case spelling
      reader = rest.startsWith('<') ? createXmlReader(emit, onProblem) : createTextReader(emit)
    }
    reader.write(rest)
  }

  return {
    get isStopped() {
      return isStopped
    },
    write(chunk) {
      decoder ??= decoderOf(chunk)
      const text = decoder.decode(chunk, { stream: true })
      if (!isStopped) attempt(() => read(text))
    },
    end() {
      if (isStopped) return
      attempt(() => {
        read(decoder?.decode() ?? '')
        reader?.end()
      })
      if (!hasEntries && !isStopped) onProblem('there is not one entry in it')
    },
    take() {
      const taken = entries
      entries = []
      return taken
    },
  }
}

/** BOM, then the XML declaration, otherwise UTF-8. Invalid bytes become U+FFFD: one bad entry, not a bad file. */
function decoderOf(chunk: Uint8Array) {
  const head = Buffer.from(chunk.buffer, chunk.byteOffset, Math.min(chunk.length, 200)).toString('latin1')
  if (head.startsWith('\xFF\xFE')) return new TextDecoder('utf-16le')
  if (head.startsWith('\xFE\xFF')) return new TextDecoder('utf-16be')
  const declared = /^\s*<\?xml[^>]*encoding\s*=\s*["']([\w.:-]+)["']/.exec(head)?.[1] ?? 'utf-8'
  try {
    return new TextDecoder(declared)
  } catch {
    return new TextDecoder()
  }
}

type Emit = (entry: SitemapEntry) => void

interface Reader {
  write(text: string): void
  end(): void
}

function createTextReader(emit: Emit): Reader {
  let rest = ''
  const line = (text: string) => {
    if (/^\s*https?:\/\//i.test(text)) emit({ kind: 'page', loc: text.trim() })
  }
  return {
    write(text) {
      const lines = (rest + text).split(/\r\n|\r|\n/)
      rest = lines.pop()!.slice(0, TEXT_CHARS_MAX + 1) // anything longer is not a URL
      for (const each of lines) line(each)
    },
    end: () => line(rest),
  }
}

function createXmlReader(emit: Emit, onProblem: (message: string) => void): Reader {
  const parser = new SaxesParser()
  const faults = countFaults(onProblem)
  const path: string[] = []
  let entry: Partial<SitemapEntry> = {}
  let text = ''
  let taglessChars = 0
  parser.on('error', faults.count) // the parser continues after an error
  parser.on('opentag', (tag) => {
    taglessChars = 0
    if (path.push(localName(tag.name)) > DEPTH_MAX) throw new Error(`tags nested more than ${DEPTH_MAX} deep`)
    if (path.length === 1 && path[0] === 'html') throw new Error(WEB_PAGE)
    faults.report()
    text = ''
    if (isEntry(path.at(-1)!)) entry = {}
    else if (path.at(-1) === 'link' && isFeedEntry(path.at(-2))) readFeedLink(tag, entry)
  })
  const addText = (more: string) => {
    if (text.length <= TEXT_CHARS_MAX) text += bounded(more)
  }
  parser.on('text', addText)
  parser.on('cdata', (raw) => addText(raw.replaceAll('&amp;', '&'))) // undoes escapeBare; doubly escaped links benefit from it
  parser.on('closetag', (tag) => {
    taglessChars = 0
    const name = localName(tag.name)
    // A closing tag without an opening one is ignored; a missing closing tag is implied by its parent's.
    const at = path.lastIndexOf(name)
    if (at === -1) return
    readText(name, path[at - 1], text.trim(), entry)
    text = ''
    path.length = at
    if (!isEntry(name)) return
    const kind = name === 'sitemap' ? 'sitemap' : 'page'
    if (entry.loc !== undefined && entry.loc !== '') emit({ ...entry, kind, loc: entry.loc })
    entry = {}
  })
  let held = ''
  return {
    write(chunk) {
      const text = held + chunk
      const cut = text.lastIndexOf('&')
      const mayGoOn = cut !== -1 && text.length - cut < ENTITY_CHARS_MAX && !text.includes(';', cut)
      held = mayGoOn ? text.slice(cut) : ''
      taglessChars += chunk.length
      parser.write(escapeBare(mayGoOn ? text.slice(0, cut) : text))
      if (taglessChars > TAGLESS_CHARS_MAX) throw new Error(`more than ${TAGLESS_CHARS_MAX} characters without a tag`)
    },
    // The parser's own close() would only report every tag that is still open, one by one.
    end() {
      parser.write(escapeBare(held))
      const open = path.at(-1)
      if (open !== undefined) throw new Error(`it ends inside <${open}>, as if it had been cut off`)
    },
  }
}

interface Faults {
  /** Throws if there are too many. */
  count(error: Error): void
  /** Reports the first one. Not before the first tag: HTML is also a fault, but has its own message. */
  report(): void
}

function countFaults(onProblem: (message: string) => void): Faults {
  let faults = 0
  let first = ''
  let isRooted = false
  const say = () => onProblem(`not well-formed XML (${first}); what can be read is used`)
  return {
    count({ message }) {
      faults++
      if (faults === 1) {
        first = message.slice(0, FAULT_CHARS_MAX)
        if (isRooted) say()
      } else if (faults > FAULTS_MAX) throw new Error(`more than ${FAULTS_MAX} faults in the XML (the first: ${first})`)
    },
    report() {
      if (!isRooted && faults > 0) say()
      isRooted = true
    },
  }
}

const ENTITY_CHARS_MAX = 10

/**
 * `?a=1&b=2` is everywhere, and saxes would read from the & to the next semicolon. So everything except XML's own entities
 * becomes plain text, including all entities a DTD could declare.
 */
function escapeBare(text: string): string {
  return text.includes('&') ? text.replace(/&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[\da-f]{1,6});)/gi, '&amp;') : text
}

/** Some files prefix every name (`sm:loc`). `image:loc` is distinguished by its parent, `image:image`. */
function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1).toLowerCase()
}

const isEntry = (name: string) => name === 'url' || name === 'sitemap' || name === 'item' || name === 'entry'
const isFeedEntry = (name: string | undefined) => name === 'item' || name === 'entry'

function readText(name: string, parent: string | undefined, text: string, entry: Partial<SitemapEntry>): void {
  if (parent === 'url' || parent === 'sitemap') {
    if (name === 'loc' || name === 'lastmod' || name === 'priority') entry[name] ??= text
  } else if (parent === 'news' && name === 'publication_date') {
    entry.lastmod ??= text
  } else if (parent === 'image' && name === 'loc' && (entry.images?.length ?? 0) < IMAGES_MAX) {
    entry.images = [...(entry.images ?? []), text]
  } else if (isFeedEntry(parent)) {
    if (name === 'link' && text !== '') entry.loc ??= text
    else if (name === 'pubdate' || name === 'updated') entry.lastmod ??= text
  }
}

function readFeedLink(tag: SaxesTagPlain, entry: Partial<SitemapEntry>): void {
  const { href, rel = 'alternate' } = tag.attributes
  if (href !== undefined && rel === 'alternate') entry.loc ??= bounded(href)
}

/** Anything longer is not a URL. A copy: a slice would keep the whole text in memory. */
function bounded(text: string): string {
  return text.length <= TEXT_CHARS_MAX ? text : Buffer.from(text.slice(0, TEXT_CHARS_MAX + 1)).toString()
}
