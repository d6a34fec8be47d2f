/** Charset detection and decoding: BOM, then HTTP header, then meta or XML declaration, then the bytes themselves. */
import { isAscii, isUtf8 } from 'node:buffer'
import { TextDecoder } from 'node:util'
import { ScrapeError } from '../../core/errors.ts'
import { encodingName, htmlDeclaration, xmlDeclaration } from './prescan.ts'

interface ContentType {
  /** `text/html`, lower case; empty if there was none. */
  readonly essence: string
  /** As written in the header, in lower case; empty if it has none. */
  readonly charsetLabel: string
  /** WHATWG name of the label in lower case; empty if there is none or it is unknown. */
  readonly charset: string
  readonly markup: 'html' | 'xml' | 'unknown' | 'none'
}

/** Servers repeat themselves, so the same header is parsed once. Bounded, because hostile servers do not. */
const parsed = new Map<string, ContentType>()
const PARSED_MAX = 500

export function parseContentType(header: string): ContentType {
  let type = parsed.get(header)
  if (type === undefined) {
    type = readContentType(header.slice(0, 1000))
    if (parsed.size >= PARSED_MAX) parsed.clear()
    parsed.set(header, type)
  }
  return type
}

function readContentType(header: string): ContentType {
  const essence = header.split(/[;,]/, 1)[0]!.trim().toLowerCase()
  const charsetLabel = /[;,\s]charset\s*=\s*["']?\s*([^\s"';,]+)/i.exec(header)?.[1]?.toLowerCase() ?? ''
  let markup: ContentType['markup'] = 'none'
  if (essence === '') markup = 'unknown'
  else if (essence === 'text/html') markup = 'html'
  else if (/^(?:text|application)\/xml$|\+xml$/.test(essence)) markup = 'xml'
  return { essence, charsetLabel, charset: charsetLabel === '' ? '' : encodingName(charsetLabel), markup }
}

/** How far down a meta element may be. Browsers look at 1 KiB before they parse, but also obey a later one. */
const PRESCAN_BYTES = 1024
const PRESCAN_BYTES_MAX = 65_536
/** UTF-7 is not used on the web: text that looks harmless becomes markup in a reader that trusts the label. */
const UTF7 = /^(?:x-)?(?:unicode-\d-\d-)?(?:cs)?(?:unicode11)?utf-?7(?:-imap)?$/
const UTF7_DECLARED = /(?:charset|encoding)\s*=\s*["']?\s*(?:x-)?(?:unicode-\d-\d-)?utf-?7\b/i

/** WHATWG name, in lower case, of the encoding of `body`. Throws `E_CHARSET` if any guess could be wrong. */
export function detectCharset(body: Buffer, type: ContentType): string {
  const bom = bomCharset(body)
  if (bom !== '') return bom
  if (type.charset !== '') return usable(type.charset)
  if (UTF7.test(type.charsetLabel)) throw refused(type.charsetLabel)
  const declared = declaredCharset(body, type)
  if (declared !== '') return usable(declared)
  if (isUtf8(body)) return 'utf-8'
  // An unknown label and bytes that are not UTF-8: any choice could silently produce wrong text.
  if (type.charsetLabel !== '') throw refused(type.charsetLabel)
  return 'windows-1252'
}

export function decodeText(body: Buffer, charset: string): string {
  if (charset !== 'utf-8') return decoderOf(charset).decode(body)
  const bytes = body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? body.subarray(3) : body
  return isAscii(bytes) ? bytes.toString('latin1') : bytes.toString('utf8')
}

function bomCharset(body: Buffer): string {
  if (body[0] === 0xef) return body[1] === 0xbb && body[2] === 0xbf ? 'utf-8' : ''
  if (body[0] === 0xff) return body[1] === 0xfe ? 'utf-16le' : ''
  return body[0] === 0xfe && body[1] === 0xff ? 'utf-16be' : ''
}

function declaredCharset(body: Buffer, { markup }: ContentType): string {
  if (markup === 'none' || body.length === 0) return ''
  if (UTF7_DECLARED.test(body.toString('latin1', 0, PRESCAN_BYTES))) throw refused('utf-7')
  if (markup === 'xml') return xmlDeclaration(body)
  const early = htmlDeclaration(body, PRESCAN_BYTES)
  // ASCII reads the same in every encoding a late meta could name, so only other pages pay for the long search.
  if (early !== '' || body.length <= PRESCAN_BYTES || isAscii(body)) return early
  return htmlDeclaration(body, PRESCAN_BYTES_MAX)
}

const decoders = new Map<string, TextDecoder>()

/** Bounded by the number of encodings. */
function decoderOf(charset: string): TextDecoder {
  let decoder = decoders.get(charset)
  if (decoder === undefined) {
    decoder = new TextDecoder(charset)
    decoders.set(charset, decoder)
  }
  return decoder
}

/** The standard's `replacement` stands for encodings that are refused because they can smuggle markup. */
function usable(charset: string): string {
  if (charset === 'replacement') throw refused(charset)
  return charset
}

function refused(label: string): ScrapeError {
  return new ScrapeError(
    'E_CHARSET',
    `the page names the charset ${JSON.stringify(label.slice(0, 50))}, which is refused`,
  )
}
