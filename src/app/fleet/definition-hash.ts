/** The fingerprint of a scraper's source: workers on other machines must run the same definition as the run was started with. */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, relative, resolve, sep } from 'node:path'

/** Static and dynamic imports, and re-exports, of files beside the scraper. */
const RELATIVE_IMPORT = /\b(?:from|import)\s*\(?\s*['"](\.{1,2}\/[^'"]+)['"]/g

/**
 * Over the text of the file and of every file it imports by a relative path, in turn. Packages are left out: their versions
 * are the lockfile's business, and two builds of one version must not keep a fleet apart.
 */
export function definitionHash(file: string): string {
  const texts = new Map<string, string>()
  collect(resolve(file), texts)
  const base = dirname(resolve(file))
  const hash = createHash('sha256')
  const named = [...texts].map(([path, text]) => [relative(base, path).split(sep).join('/'), text] as const)
  for (const [name, text] of named.sort(([a], [b]) => (a < b ? -1 : 1))) {
    // Lengths first: no two sets of files read as the same stream. Line ends differ between checkouts, not in meaning.
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
