/**
 * House rules that can be checked automatically. Others: test/imports.test.ts (who imports whom), biome.json (floating promises).
 */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const isTestFile = (file: string) => /\.test(?:-[\w-]+)?\.ts$/.test(file)
const ENTRIES = ['src/index.ts', 'src/testing.ts', 'src/jobs/index.ts', 'src/server/api/client.ts']
/** The compiler has to name these in types that it infers elsewhere. */
const IN_INFERRED_TYPES = ['src/server/api/routes/endpoint.ts: Streamed']

const EXPORT =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type|enum)\s+(\w+)/gm
const IMPORT = /(?:import|export)\s+(?:type\s+)?((?:\w+\s*,\s*)?\{[^}]*\}|\*(?:\s+as\s+\w+)?|\w+)\s*from\s*'(\.[^']+)'/g
const DYNAMIC_IMPORT = /import\('(\.[^']+)'\)/g

type Texts = ReadonlyMap<string, string>

/** `file: name` of each export that no other file imports. If a file is imported as a whole, any of its names may be used. */
function unusedExports(texts: Texts): string[] {
  const named = new Map<string, Set<string>>()
  const importersOfAll = new Map<string, string[]>()
  const add = <V>(map: Map<string, V[]>, key: string, value: V) => map.set(key, [...(map.get(key) ?? []), value])
  for (const [file, text] of texts) {
    for (const [, names, to] of text.matchAll(IMPORT)) {
      const target = join(dirname(file), to!)
      if (names!.startsWith('*')) add(importersOfAll, target, text)
      const known = named.get(target) ?? new Set<string>()
      for (const [, name] of names!.matchAll(/(?:type\s+)?(\w+)(?:\s+as\s+\w+)?/g)) known.add(name!)
      named.set(target, known)
    }
    for (const [, to] of text.matchAll(DYNAMIC_IMPORT)) add(importersOfAll, join(dirname(file), to!), text)
  }
  const isUsed = (file: string, name: string) =>
    named.get(file)?.has(name) === true ||
    importersOfAll.get(file)?.some((text) => new RegExp(`\\b${name}\\b`).test(text)) === true
  return [...texts]
    .filter(([file]) => file.startsWith('src/') && !isTestFile(file) && !ENTRIES.includes(file))
    .flatMap(([file, text]) => [...text.matchAll(EXPORT)].map(([, name]) => [file, name!] as const))
    .filter(([file, name]) => !isUsed(file, name))
    .map(([file, name]) => `${file}: ${name}`)
}

test('every export is imported somewhere', () => {
  const files = globSync('{src,test,bench,scripts,docs,deploy,scrapers}/**/*.ts', { cwd: ROOT })
  const texts = new Map(files.map((file) => [file, readFileSync(join(ROOT, file), 'utf8')]))
  assert.ok(texts.size > 1000)
  assert.deepEqual(
    unusedExports(texts).filter((one) => !IN_INFERRED_TYPES.includes(one)),
    [],
  )
})

test('finds an export that nothing imports, and accepts any kind of import', () => {
  const texts = new Map([
    ['src/a.ts', 'export const one = 1\nexport interface Two {}\nexport function three() {}\nexport class Four {}\n'],
    ['src/b.ts', "import { one, type Two as Other } from './a.ts'\nconst { three } = await import('./a.ts')\n"],
  ])
  assert.deepEqual(unusedExports(texts), ['src/a.ts: Four'])
})

test('ARCHITECTURE.md names every folder of src, and no other', () => {
  const text = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8')
  const named = [...text.matchAll(/^\| `src\/([\w-]+)\/`/gm)].map(([, name]) => name!)
  const there = globSync('src/*/', { cwd: ROOT }).map((folder) => folder.replace(/^src\/|\/$/g, ''))
  assert.deepEqual(named.sort(), there.sort())
})

test('every path that ARCHITECTURE.md names exists', () => {
  const text = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8')
  const files = globSync('**/*.{ts,md}', { cwd: ROOT, exclude: (name) => /node_modules|\.deps/.test(String(name)) })
  const paths = [...text.matchAll(/`([\w./-]+\.(?:ts|md))`/g)].map(([, path]) => path!)
  const isThere = (path: string) => files.some((file) => file === path || file.endsWith(`/${path}`))
  assert.ok(paths.length > 20)
  assert.deepEqual(
    paths.filter((path) => !isThere(path)),
    [],
  )
})

test('the glossary names every engine', () => {
  const glossary = readFileSync(join(ROOT, 'docs/glossary.md'), 'utf8')
  for (const engine of ['memory:', 'sqlite:', 'postgres:', 'amqp:', 'redis:'])
    assert.ok(glossary.includes(`\`${engine}`), `docs/glossary.md does not name ${engine}`)
})
