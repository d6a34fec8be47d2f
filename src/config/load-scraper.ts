/** Finds scrapers by name or file and loads them. A file anywhere may import "sluice" and "zod": they resolve to ours. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { basename, dirname, extname, join, resolve, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { didYouMean } from '../core/did-you-mean.ts'
import { ScrapeError } from '../core/errors.ts'
import { isScraper, type Scraper } from '../core/scraper.ts'

const PROJECT = fileURLToPath(new URL('../../', import.meta.url))
const BUNDLED = join(PROJECT, 'scrapers')
/** Bundled scrapers are like this file: TypeScript in the repository, JavaScript in the package. Users write TypeScript. */
const BUNDLED_EXTENSION = extname(import.meta.filename)

interface FoundScraper {
  name: string
  file: string
  isBundled: boolean
  /** One of the many bundled job boards: listed only on request. */
  isBoard: boolean
}

export interface LoadedScraper {
  scraper: Scraper
  file: string
}

/** The user's `scrapers/`, then the bundled ones: `name.ts`, a folder with `name.ts` or `index.ts`, or a folder of these. */
export function listScrapers(cwd = process.cwd()): FoundScraper[] {
  const own = resolve(cwd, 'scrapers')
  const bases = own === resolve(BUNDLED) ? [BUNDLED] : [own, BUNDLED]
  const found = new Map<string, FoundScraper>()
  for (const base of bases) {
    for (const { name, file } of scrapersIn(base)) {
      if (!found.has(name)) found.set(name, { name, file, isBundled: base === BUNDLED, isBoard: isBoard(file) })
    }
  }
  return [...found.values()]
}

const isBoard = (file: string) => file.startsWith(join(BUNDLED, 'jobs', sep))

/** The scraper that `sluice run` uses if no name is given. */
export function onlyScraper(cwd = process.cwd()): string {
  const own = listScrapers(cwd).filter(({ isBundled }) => !isBundled)
  if (own.length === 1) return own[0]!.name
  const names = own.map(({ name }) => name).join(', ')
  throw new ScrapeError('E_USAGE', 'which scraper?', {
    notes: [own.length === 0 ? 'there is none in ./scrapers' : `in ./scrapers: ${names}`],
    fix:
      own.length === 0 ? 'Make a project with sluice init, or name one of sluice list.' : `sluice run ${own[0]!.name}`,
  })
}

function scrapersIn(base: string): { name: string; file: string }[] {
  const extension = base === BUNDLED ? BUNDLED_EXTENSION : '.ts'
  return foldersAndFiles(base).flatMap((entry) => {
    const file = entryFile(base, entry, extension)
    if (file !== undefined) return [{ name: basename(entry, extension), file }]
    const group = join(base, entry)
    return foldersAndFiles(group).flatMap((name) => {
      const inGroup = join(group, name, `${name}${extension}`)
      return existsSync(inGroup) ? [{ name, file: inGroup }] : []
    })
  })
}

function foldersAndFiles(folder: string): string[] {
  return existsSync(folder) && statSync(folder).isDirectory() ? readdirSync(folder).sort() : []
}

function entryFile(base: string, entry: string, extension: string): string | undefined {
  const path = join(base, entry)
  if (statSync(path).isDirectory())
    return [join(path, `${entry}${extension}`), join(path, `index${extension}`)].find((file) => existsSync(file))
  return entry.endsWith(extension) && !entry.endsWith('.test.ts') && !entry.endsWith('.d.ts') ? path : undefined
}

export async function loadScraper(nameOrFile: string, cwd = process.cwd()): Promise<LoadedScraper> {
  const file = findFile(nameOrFile, cwd)
  resolveOurNames()
  let module: { default?: unknown }
  try {
    module = await import(pathToFileURL(file).href)
  } catch (cause) {
    if (cause instanceof ScrapeError)
      throw new ScrapeError(cause.code, cause.message, { ...cause.details, at: file, cause })
    throw new ScrapeError('E_DEFINITION', `${file} does not load: ${(cause as Error).message}`, {
      at: placeIn(cause as Error, file),
      cause,
    })
  }
  if (!isScraper(module.default)) {
    throw new ScrapeError('E_DEFINITION', `${file} has no scraper as its default export`, {
      at: file,
      fix: 'Write: export default defineScraper({ … })',
    })
  }
  return { scraper: module.default, file }
}

function findFile(nameOrFile: string, cwd: string): string {
  const asPath = resolve(cwd, nameOrFile)
  if (/\.[cm]?[jt]s$/.test(nameOrFile)) {
    if (existsSync(asPath)) return asPath
    throw new ScrapeError('E_SCRAPER_NOT_FOUND', `no file ${asPath}`)
  }
  const known = listScrapers(cwd)
  const found = known.find((scraper) => scraper.name === nameOrFile)
  if (found !== undefined) return found.file
  const names = known.filter((scraper) => !scraper.isBoard).map(({ name }) => name)
  const near = didYouMean(nameOrFile, names)
  throw new ScrapeError('E_SCRAPER_NOT_FOUND', `no scraper "${nameOrFile}"`, {
    notes: [
      ...(near === undefined ? [] : [`did you mean ${near}?`]),
      `known: ${names.join(', ') || '(none)'}`,
      '`sluice list --all` also lists the bundled job boards',
    ],
  })
}

/** `file.ts:12`, from the first line of a syntax error's stack trace or the first frame in the file. */
function placeIn(error: Error, file: string): string {
  const stack = error.stack ?? ''
  const line = stack.split(file)[1]?.match(/^:(\d+)/)?.[1]
  return line === undefined ? file : `${file}:${line}`
}

let isHooked = false

function resolveOurNames(): void {
  if (isHooked) return
  isHooked = true
  const ours = pathToFileURL(join(PROJECT, 'package.json')).href
  registerHooks({
    resolve(specifier, context, next) {
      const isOurs = /^(?:sluice|zod)(?:\/|$)/.test(specifier)
      const isOutside =
        context.parentURL?.startsWith('file:') === true && !context.parentURL.startsWith(pathToFileURL(PROJECT).href)
      if (!isOurs || !isOutside) return next(specifier, context)
      try {
        return next(specifier, context) // the user's own copy first
      } catch {
        return next(specifier, { ...context, parentURL: ours })
      }
    },
  })
}

/** The folder next to a scraper's file with its recorded pages. */
export function pagesFolder(file: string): string {
  const name = basename(file, extname(file))
  return basename(dirname(file)) === name || name === 'index'
    ? join(dirname(file), 'pages')
    : join(dirname(file), `${name}.pages`)
}
