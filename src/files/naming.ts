/**
 * The name of a stored file: `<scraper>/<run>/<user or _>/<task>-<name>.<ext>`.
 *
 * Names come from untrusted servers. Only letters, digits and `. _ -` are kept, in one Unicode form, after the task's own id: so
 * two names never collide, none is hidden, reserved or a path to another folder, and none is longer than 120 bytes.
 */
import { hash } from 'node:crypto'
import { ScrapeError } from '../core/errors.ts'
import { extensionFor, isKnownExtension } from './types.ts'

interface KeyParts {
  scraper: string
  runId: string
  /** Empty for none. */
  user: string
  taskId: string
  /** Any text at all. */
  name: string
  contentType: string
}

const SEGMENT_BYTES_MAX = 120
/** 80 bits: among a million files of one run, two collide with a probability of 1 in 10^12. */
const ID_CHARS = 20
const EXTENSION_CHARS_MAX = 12
const NAME_WHEN_NONE = 'file'

export function fileKey({ scraper, runId, user, taskId, name, contentType }: KeyParts): string {
  const folders = [folder(scraper), folder(runId), user === '' ? '_' : folder(user)]
  const id = /^[0-9a-f]{20,}$/.test(taskId) ? taskId : hash('sha256', taskId, 'hex')
  return `${folders.join('/')}/${id.slice(0, ID_CHARS)}-${safeName(name, contentType)}`
}

/** One segment: letters, digits and `. _ -` only, with the extension for its type. */
export function safeName(name: string, contentType: string): string {
  const clean = cleaned(basename(name))
  const dot = clean.lastIndexOf('.')
  const named = dot > 0 && clean.length - dot - 1 <= EXTENSION_CHARS_MAX ? clean.slice(dot + 1).toLowerCase() : ''
  const extension = extensionFor(contentType, /^[a-z0-9]+$/.test(named) ? named : '')
  // A known extension that is wrong is replaced; `v1.2` has none.
  const hasOne = named !== '' && (named === extension || isKnownExtension(named))
  const stem = (hasOne ? clean.slice(0, dot) : clean).replace(/[._-]+$/, '') || NAME_WHEN_NONE
  const room = SEGMENT_BYTES_MAX - ID_CHARS - 1 - (extension === '' ? 0 : extension.length + 1)
  const cut = cutToBytes(stem, room).replace(/[._-]+$/, '') || NAME_WHEN_NONE
  return extension === '' ? cut : `${cut}.${extension}`
}

/** Two different texts never become the same folder: a text that had to be changed gets a hash of the original. */
function folder(text: string): string {
  const safe = cutToBytes(cleaned(text), 80).replace(/[.]+$/, '')
  if (safe === text && safe !== '' && safe !== '_' && !RESERVED.test(safe)) return safe
  return `${safe.replace(/^_$/, '')}-${hash('sha256', text.toWellFormed(), 'hex').slice(0, 12)}`.replace(
    RESERVED,
    '_$&',
  )
}

/** Names reserved by Windows, with or without an extension: stores are copied to all kinds of systems. */
const RESERVED = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i

function basename(text: string): string {
  return text.split(/[/\\]/).findLast((part) => !/^[\s.]*$/.test(part)) ?? ''
}

function cleaned(text: string): string {
  return text
    .toWellFormed()
    .normalize('NFC')
    .replace(/[^\p{L}\p{M}\p{N}._-]+/gu, '-')
    .replace(/-{2,}/g, '-')
    .replace(/\.{2,}/g, '.')
    .replace(/^[\p{M}._-]+/u, '')
    .normalize('NFC')
}

/** Cuts between characters, so that it stays valid text. */
function cutToBytes(text: string, bytesMax: number): string {
  if (Buffer.byteLength(text) <= bytesMax) return text
  let cut = ''
  let bytes = 0
  for (const character of text) {
    bytes += Buffer.byteLength(character)
    if (bytes > bytesMax) break
    cut += character
  }
  return cut.normalize('NFC')
}

/** Whether it is a valid store key, as created here. */
export function isPlain(key: string): boolean {
  return /^(?:[\p{L}\p{M}\p{N}_-][\p{L}\p{M}\p{N}._-]*\/)*[\p{L}\p{M}\p{N}_-][\p{L}\p{M}\p{N}._-]*$/u.test(key)
}

/** For stores: a key that was not created here is a bug, and must not overwrite another file. */
export function mustBePlain(key: string): void {
  if (isPlain(key)) return
  throw new ScrapeError('E_OUTPUT', `${JSON.stringify(key.slice(0, 200))} is not a valid key of the file store`)
}

/** The name a URL suggests; empty if it suggests none. */
export function nameOfUrl(url: string): string {
  const last = URL.parse(url)?.pathname.split('/').findLast(Boolean) ?? ''
  try {
    return basename(decodeURIComponent(last))
  } catch {
    return basename(last)
  }
}
