/** File types: detected by the first bytes, and which extensions go with them. */

/** How many of the first bytes are inspected. Office files need a few entries of their archive, the rest a few dozen bytes. */
export const SNIFF_BYTES = 16_384

const UNKNOWN_TYPE = 'application/octet-stream'

/**
 * Extensions by type; the first is the default. Several types share one container format: those keep the extension they came
 * with.
 */
const EXTENSIONS: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    'application/pdf': ['pdf', 'ai'],
    'image/jpeg': ['jpg', 'jpeg', 'jpe', 'jfif'],
    'image/png': ['png'],
    'image/apng': ['png', 'apng'],
    'image/gif': ['gif'],
    'image/webp': ['webp'],
    'image/avif': ['avif'],
    'image/svg+xml': ['svg'],
    'image/tiff': ['tif', 'tiff', 'dng', 'nef', 'cr2', 'arw'],
    'image/bmp': ['bmp'],
    'image/x-icon': ['ico'],
    'application/zip': [
      'zip',
      'docx',
      'xlsx',
      'pptx',
      'odt',
      'ods',
      'odp',
      'epub',
      'jar',
      'apk',
      'kmz',
      'cbz',
      'ipa',
      'whl',
      'xpi',
    ],
    'application/x-cfb': ['cfb', 'doc', 'xls', 'ppt', 'msi', 'msg', 'vsd', 'pub'],
    'application/gzip': ['gz', 'tgz', 'svgz'],
    'application/x-bzip2': ['bz2', 'tbz2'],
    'application/x-xz': ['xz', 'txz'],
    'application/zstd': ['zst', 'tzst'],
    'application/x-7z-compressed': ['7z'],
    'application/x-rar-compressed': ['rar', 'cbr'],
    'application/x-tar': ['tar'],
    'application/x-msdownload': ['exe', 'dll', 'scr', 'sys'],
    'application/vnd.openxmlformats-officedocument.wordprocessingml.document': ['docx', 'docm'],
    'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': ['xlsx', 'xlsm'],
    'application/vnd.openxmlformats-officedocument.presentationml.presentation': ['pptx', 'pptm'],
    'application/msword': ['doc'],
    'application/vnd.ms-excel': ['xls', 'csv'],
    'application/epub+zip': ['epub'],
    'application/json': ['json', 'geojson', 'webmanifest', 'map', 'ipynb'],
    'application/xml': ['xml', 'svg', 'rss', 'atom', 'kml', 'gpx', 'xsd', 'xsl', 'xslt', 'plist', 'xhtml'],
    'text/xml': ['xml', 'svg', 'rss', 'atom', 'kml', 'gpx', 'xsd', 'xsl', 'xslt', 'plist', 'xhtml'],
    'text/html': ['html', 'htm', 'xhtml', 'shtml'],
    'text/csv': ['csv', 'txt'],
    'text/calendar': ['ics'],
    'text/css': ['css'],
    'text/javascript': ['js', 'mjs', 'cjs'],
    'application/javascript': ['js', 'mjs', 'cjs'],
    'video/mp4': ['mp4', 'm4v', 'm4a', 'mov'],
    'video/quicktime': ['mov', 'qt'],
    'video/webm': ['webm'],
    'video/matroska': ['mkv', 'mka', 'webm'],
    'audio/mpeg': ['mp3'],
    'audio/mp4': ['m4a', 'm4b', 'mp4'],
    'audio/x-m4a': ['m4a', 'm4b', 'mp4'],
    'audio/wav': ['wav'],
    'audio/ogg': ['ogg', 'oga', 'opus'],
    'audio/flac': ['flac'],
    'font/woff': ['woff'],
    'font/woff2': ['woff2'],
    'font/ttf': ['ttf'],
    'font/otf': ['otf'],
  }),
)

/** Types that the first bytes always reveal: inconclusive bytes are none of these, whatever the name or the server claims. */
const TOLD_BY_BYTES = new Set(
  ['pdf', 'jpg', 'jpeg', 'png', 'gif', 'webp', 'avif', 'zip', 'docx', 'xlsx', 'pptx', 'epub', 'jar', 'apk'].concat([
    'gz',
    'tgz',
    'bz2',
    'xz',
    '7z',
    'rar',
    'zst',
    'exe',
    'dll',
    'doc',
    'mp4',
    'webm',
    'flac',
    'woff',
    'woff2',
  ]),
)

const KNOWN = new Set([...EXTENSIONS.values()].flat())

export function isKnownExtension(extension: string): boolean {
  return KNOWN.has(extension)
}

/** The extension for this type: the original one if it fits. Empty if nothing is known. */
export function extensionFor(contentType: string, named: string): string {
  const fitting = EXTENSIONS.get(contentType)
  if (fitting !== undefined) return fitting.includes(named) ? named : fitting[0]!
  if (contentType === 'text/plain') return named === '' || TOLD_BY_BYTES.has(named) ? 'txt' : named
  return TOLD_BY_BYTES.has(named) && (contentType === UNKNOWN_TYPE || contentType.startsWith('text/')) ? 'bin' : named
}

/** `head` is the beginning of the file, `served` the server's Content-Type. */
export async function typeOf(head: Uint8Array, served: string | undefined): Promise<string> {
  const claimed = /^[\w!#$&^.+-]{1,64}\/[\w!#$&^.+-]{1,128}/.exec(served?.trim() ?? '')?.[0].toLowerCase()
  const sniffed = await sniff(head)
  if (sniffed !== undefined) return sniffed
  const isTold =
    claimed !== undefined && (EXTENSIONS.get(claimed) ?? []).some((extension) => TOLD_BY_BYTES.has(extension))
  if (claimed !== undefined && claimed !== UNKNOWN_TYPE && !(isTold && head.length > 0)) return claimed
  const start = Buffer.from(head.buffer, head.byteOffset, Math.min(head.length, 512)).toString('latin1')
  if (/^(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html|head|body)[\s>]/i.test(start)) return 'text/html'
  return UNKNOWN_TYPE
}

async function sniff(head: Uint8Array): Promise<string | undefined> {
  try {
    const { fileTypeFromBuffer } = await import('file-type')
    const found = await fileTypeFromBuffer(head.subarray(0, SNIFF_BYTES))
    return found?.mime.replace(/;.*/s, '')
  } catch {
    return undefined // a file that breaks its parser has no type
  }
}
