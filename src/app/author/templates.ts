/** The bundled templates, filled in and written where nothing is yet. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ScrapeError } from '../../core/errors.ts'

/** Where Sluice itself is installed. */
export const INSTALLATION = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '')
const TEMPLATES = join(INSTALLATION, 'templates')

/** Files of a template folder, by their path in the new place. */
export function templateFiles(folder: string, tokens: Record<string, string>): Map<string, string> {
  const base = join(TEMPLATES, folder)
  const files = readdirSync(base, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return new Map(
    files
      .map((entry) => relative(base, join(entry.parentPath, entry.name)))
      .sort()
      .map((path) => [renamed(path), fillTemplate(readFileSync(join(base, path), 'utf8'), tokens)]),
  )
}

/** A real .gitignore among the templates would hide them from git. */
const renamed = (path: string) => (path === 'gitignore' ? '.gitignore' : path)

/** `__TOKEN__` becomes its value. A line that ends in `//? token` stays only if that token has one. */
export function fillTemplate(text: string, tokens: Record<string, string | undefined>): string {
  return text
    .split('\n')
    .flatMap((line) => {
      const [, code, condition] = /^(.*?)\s*\/\/\? (\w+)$/.exec(line) ?? []
      if (condition === undefined) return [line]
      return tokens[condition.toUpperCase()] === undefined ? [] : [code!]
    })
    .join('\n')
    .replace(/__([A-Z]+)__/g, (whole, name: string) => tokens[name] ?? whole)
}

export function readTemplate(path: string): string {
  return readFileSync(join(TEMPLATES, path), 'utf8')
}

/** All of them or none: what is there already is never touched. */
export function writeNewFiles(folder: string, files: ReadonlyMap<string, string>): void {
  const paths = [...files.keys()].map((path) => resolve(folder, path))
  const taken = paths.filter((path) => existsSync(path))
  if (taken.length > 0)
    throw new ScrapeError(
      'E_USAGE',
      `${taken.length === 1 ? 'a file is' : 'files are'} there already, and nothing is overwritten`,
      {
        notes: taken,
        fix: 'Choose another folder or name, or move them away.',
      },
    )
  try {
    for (const [path, text] of files) {
      const target = resolve(folder, path)
      mkdirSync(dirname(target), { recursive: true })
      writeFileSync(target, text, { flag: 'wx' })
    }
  } catch (cause) {
    throw new ScrapeError('E_USAGE', `cannot write into ${resolve(folder)}: ${(cause as Error).message}`, {
      fix: 'Make the folder writable, or choose another.',
      cause,
    })
  }
}
