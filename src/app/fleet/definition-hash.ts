/** Hash of a scraper's source: workers on other machines must run the same definition that the run was started with. */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, relative, resolve, sep } from 'node:path'

/** Matches static and dynamic imports, and re-exports, of local files. */
const RELATIVE_IMPORT = /\b(?:from|import)\s*\(?\s*['"](\.{1,2}\/[^'"]+)['"]/g

/**
 * Covers the file and, recursively, every file it imports by a relative path. Packages are excluded: the lockfile pins their
 * versions, and two builds of the same version must not split a fleet.
 */
export function definitionHash(file: string): string {
  const texts = new Map<string, string>()
  collect(resolve(file), texts)
  const base = dirname(resolve(file))
  const hash = createHash('sha256')
  const named = [...texts].map(([path, text]) => [relative(base, path).split(sep).join('/'), text] as const)
  for (const [name, text] of named.sort(([a], [b]) => (a < b ? -1 : 1))) {
    // With lengths first, no two sets of files produce the same stream. Line endings differ between checkouts without changing
    // the meaning.
    const plain = text.replaceAll('\r\n', '\n')
    hash.update(`${name}\0${plain.length}\0${plain}`)
  }
  return hash.digest('hex')
}

function collect(path: string, texts: Map<string, string>): void {
  if (texts.has(path) || !existsSync(path)) return
  const text = readFileSync(path, 'utf8')
  texts.set(path, text)
  for (const [, specifier] of text.matchAll(RELATIVE_IMPORT)) collect(resolve(dirname(path), specifier!), texts)
}
