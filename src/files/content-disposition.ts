/** The file name in a Content-Disposition header (RFC 6266), as real servers write it. Never throws. */
import { isUtf8 } from 'node:buffer'

/** Longer headers are not read: no real file name needs that much. */
const HEADER_CHARS_MAX = 4096

/** `filename*` before `filename`; undefined if neither is present and readable. `header` has one byte per character. */
export function nameInDisposition(header: string): string | undefined {
  const parameters = new Map<string, string>()
  const text = header.slice(0, HEADER_CHARS_MAX)
  // name = token or "quoted \"string\""; of two with the same name, the first counts.
  for (const [, name, quoted, token] of text.matchAll(
    /;\s*([\w!#$%&'*+.^`|~-]{1,64})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;"\s][^;"]*))/gs,
  )) {
    const key = name!.toLowerCase()
    if (!parameters.has(key))
      parameters.set(key, quoted === undefined ? token!.trim() : quoted.replace(/\\(.)/gs, '$1'))
  }
  const extended = decodeExtended(parameters.get('filename*') ?? '')
  if (extended !== undefined && extended !== '') return extended
  const simple = parameters.get('filename')
  if (simple === undefined || simple === '') return undefined
  return decodePercents(asUtf8(simple))
}

/** `UTF-8'en'na%C3%AFve.pdf` (RFC 8187). */
function decodeExtended(value: string): string | undefined {
  const parts = /^([\w-]+)'[\w-]*'(.*)$/s.exec(value)
  if (parts === null) return undefined
  const bytes = Buffer.from(
    parts[2]!.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  )
  switch (parts[1]!.toLowerCase()) {
    case 'utf-8':
      return isUtf8(bytes) ? bytes.toString('utf8') : undefined
    case 'iso-8859-1':
      return bytes.toString('latin1')
    default:
      return undefined
  }
}

/** Headers are bytes; many servers write UTF-8 into them, against the specification. */
function asUtf8(text: string): string {
  const bytes = Buffer.from(text, 'latin1')
  return bytes.toString('latin1') === text && isUtf8(bytes) ? bytes.toString('utf8') : text
}

/** Others percent-encode the plain form, which browsers also decode. */
function decodePercents(text: string): string {
  if (!/%[0-9a-f]{2}/i.test(text)) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
