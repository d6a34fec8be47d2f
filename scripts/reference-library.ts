/** docs/reference/library.md: what programs and scrapers may import, with the first sentence of each name's comment. */
import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { markdownTable, NOTE, page } from './reference-text.ts'

const ROOT = join(import.meta.dirname, '..')

export const ENTRIES: readonly [name: string, file: string, words: string][] = [
  ['sluice', 'src/index.ts', "Scrapers, runs and queues: all that `import … from 'sluice'` gives."],
  [
    'sluice/client',
    'src/server/api/client.ts',
    'The API of a server, typed. How to use it: [serve an API](../how-to/serve-an-api.md).',
  ],
  [
    'sluice/jobs',
    'src/jobs/index.ts',
    'For scrapers of job boards: read, check and filter postings. All of it is pure: no clock, network or disk.',
  ],
  [
    'sluice/testing',
    'src/testing.ts',
    'For `node --test`. How to use it: [test a scraper](../how-to/test-a-scraper.md).',
  ],
]

export interface ExportedName {
  name: string
  kind: string
  words: string
}

export function libraryPage(): string {
  return page([
    '# Library',
    NOTE,
    'Types say the rest: an editor shows them, with a sentence on every member.',
    ...ENTRIES.flatMap(([name, file, words]) => {
      const names = exportsOf(join(ROOT, file))
      const rows = (isType: boolean) =>
        names
          .filter(({ kind }) => isType === (kind === 'type' || kind === 'interface'))
          .map((one) => [`\`${one.name}\``, one.kind, one.words])
      return [
        `## ${name}`,
        words,
        markdownTable(['name', 'kind', 'what it is'], rows(false)),
        ...(rows(true).length === 0 ? [] : [markdownTable(['type', 'kind', 'what it is'], rows(true))]),
      ]
    }),
  ])
}

/** Follows `export … from` to the declaration of the name. */
export function exportsOf(file: string): ExportedName[] {
  const source = readFileSync(file, 'utf8')
  const passedOn = [...source.matchAll(/^export (?:type )?\{([^}]*)\} from '(\.[^']+)'/gm)].flatMap(([, list, from]) =>
    list!
      .split(',')
      .map((one) => one.trim().replace(/^type /, ''))
      .filter((one) => one !== '')
      .map((one) => definitionOf(one, resolve(dirname(file), from!))),
  )
  const own = [...source.matchAll(EXPORT)].map(({ 2: name }) => definitionOf(name!, file))
  return [...passedOn, ...own].sort((a, b) => (a.name < b.name ? -1 : 1))
}

const EXPORT = /^export (?:async |abstract )?(function\*?|class|const|interface|type) (\w+)/gm

function definitionOf(name: string, file: string): ExportedName {
  const source = readFileSync(file, 'utf8')
  const found = [...source.matchAll(EXPORT)].find(({ 2: known }) => known === name)
  if (found === undefined) {
    const elsewhere = exportsOf(file).find((one) => one.name === name) ?? imported(name, source, file)
    if (elsewhere === undefined) throw new Error(`${file} has no export ${name}`)
    return elsewhere
  }
  return { name, kind: found[1]!.replace('*', ''), words: firstSentence(commentBefore(source, found.index)) }
}

/** The same in two steps: `import { Name } from`, then `export { Name }`. */
function imported(name: string, source: string, file: string): ExportedName | undefined {
  const imports = source.matchAll(/^import (?:type )?\{([^}]*)\} from '(\.[^']+)'/gm)
  const found = [...imports].find(({ 1: names }) => new RegExp(`\\b${name}\\b`).test(names!))
  return found === undefined ? undefined : definitionOf(name, resolve(dirname(file), found[2]!))
}

/** The doc comment that ends right before this position. */
function commentBefore(source: string, index: number): string {
  const before = source.slice(0, index).replace(/\n(?:\/\/[^\n]*\n)*$/, '\n')
  if (!before.endsWith('*/\n')) return ''
  return before
    .slice(before.lastIndexOf('/**') + 3, -3)
    .replaceAll(/^\s*\* ?/gm, '')
    .trim()
}

const firstSentence = (comment: string) => (/^[\s\S]*?\.(?=\s|$)/.exec(comment)?.[0] ?? comment).replaceAll(/\s+/g, ' ')
