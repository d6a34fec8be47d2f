/** The bundled templates, filled in and written without overwriting anything. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, extname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ScrapeError } from '../../core/errors.ts'
import { optionalVersion } from '../../core/optional-package.ts'

/** Where Sluice itself is installed. */
const INSTALLATION = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '')
const TEMPLATES = join(INSTALLATION, 'templates')

/** The projects that `sluice init` creates: each is a folder in `templates/project`. */
export const PROJECTS: Readonly<Record<string, string>> = {
  basic: 'a list and the pages it links to',
  browser: 'a page that a script draws, read in a browser',
  api: 'a JSON API with pages',
  jobs: 'a board of jobs, with sluice/jobs and arguments',
  distributed: 'one run shared by workers on many machines',
}

/** The optional packages that a template needs. */
export const PROJECT_PACKAGES: Readonly<Record<string, readonly string[]>> = {
  browser: ['puppeteer-core'],
  distributed: ['pg'],
}

/**
 * Files of a new project in this folder. If the folder is not an ES module package, the files are adapted so that they load
 * anyway.
 */
export function projectFiles(name: string, folder: string): Map<string, string> {
  const tokens = { ROOT: INSTALLATION, ...(existsSync(resolve(folder, 'node_modules/sluice')) ? {} : typePlaces()) }
  const files = new Map([...templateFiles('project/common', tokens), ...templateFiles(`project/${name}`, tokens)])
  files.set('package.json', withPackages(files.get('package.json')!, PROJECT_PACKAGES[name] ?? []))
  if (isModuleFolder(folder)) return files
  // The existing package.json is not ours to change: the scrapers get their own, and the options are exported the CommonJS way.
  files.set('scrapers/package.json', files.get('package.json')!)
  files.set('sluice.config.ts', files.get('sluice.config.ts')!.replace('export default {', 'module.exports = {'))
  return files
}

function withPackages(manifest: string, names: readonly string[]): string {
  if (names.length === 0) return manifest
  const dependencies = Object.fromEntries(names.map((name) => [name, optionalVersion(name)]))
  return `${JSON.stringify({ ...JSON.parse(manifest), dependencies }, null, 2)}\n`
}

/** Where an editor finds types if the project does not depend on `sluice` itself. */
function typePlaces(): Record<string, string> {
  const zod = createRequire(import.meta.url).resolve('zod/package.json')
  return { MODULES: dirname(dirname(zod)), TYPES: extname(import.meta.filename) === '.ts' ? '.ts' : '.d.ts' }
}

function isModuleFolder(folder: string): boolean {
  const file = resolve(folder, 'package.json')
  if (!existsSync(file)) return true
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) as { type?: string }).type === 'module'
  } catch (cause) {
    throw new ScrapeError('E_USAGE', `${file} is not valid JSON: ${(cause as Error).message}`, { cause })
  }
}

/** Files of a template folder, keyed by their path in the new project. */
function templateFiles(folder: string, tokens: Record<string, string | undefined>): Map<string, string> {
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

/** `__TOKEN__` becomes its value. A line that ends in `//? token` is kept only if that token has one. */
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

/** Writes all of them or none: existing files are never touched. */
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
