/**
 * Who may import whom, read off the imports themselves:
 *
 *   core/              nothing of ours
 *   a stage            itself, core/, and any stage's contract.ts
 *   protocol/          that, and jobs/
 *   jobs-store/        that, and jobs/
 *   postgres/, redis/  the way to a server; only what is named after it goes it
 *   app/               everything but cli/; it is the composition root
 *   cli/               everything; it is what a person types
 *   index.ts           the public names: app/, core/ and contracts
 *   testing.ts         the same, and the conformance kits
 *   scrapers/          the public entries only
 *
 * Tests may reach for whatever they need to put a thing to the test, so *.test.ts files are left out.
 */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const STAGES = [
  'sources',
  'frontier',
  'fetch',
  'extract',
  'pipeline',
  'sinks',
  'files',
  'crawl',
  'orchestrator',
  'observe',
  'jobs',
  'jobs-store',
  'api',
  'history',
  'protocol',
  'webhooks',
]
const DRIVERS = ['postgres', 'redis']
const COMPOSERS = ['app', 'cli']
const PUBLIC: Readonly<Record<string, string>> = {
  sluice: 'src/index.ts',
  'sluice/client': 'src/api/client.ts',
  'sluice/jobs': 'src/jobs/index.ts',
  'sluice/testing': 'src/testing.ts',
}

interface Import {
  from: string
  to: string
  line: number
}

/** Imports and re-exports, with types and dynamic ones, and `import('…')` in types. */
const SPECIFIER = /\b(?:from|import)\s*\(?\s*'([^']+)'/g

function importsOf(file: string): Import[] {
  const text = readFileSync(join(ROOT, file), 'utf8')
  return [...text.matchAll(SPECIFIER)]
    .filter(({ index }) => !isInComment(text, index))
    .map(({ 1: to, index }) => ({ from: file, to: to!, line: text.slice(0, index).split('\n').length }))
}

function isInComment(text: string, index: number): boolean {
  const start = text.lastIndexOf('\n', index) + 1
  return /^\s*(?:\*|\/\/|\/\*)/.test(text.slice(start, index))
}

/** The path in the project an import leads to; undefined for packages and Node's own modules. */
function targetOf({ from, to }: Import): string | undefined {
  if (to.startsWith('.'))
    return relative(ROOT, resolve(ROOT, dirname(from), to))
      .split(sep)
      .join('/')
  return PUBLIC[to]
}

const folderOf = (path: string) => /^src\/([^/]+)\//.exec(path)?.[1]

/** Why this import is against the rule; undefined when it is not. */
export function problemOf(found: Import): string | undefined {
  const target = targetOf(found)
  if (target === undefined) return undefined
  const from = folderOf(found.from)
  const to = folderOf(target)
  const bad = (why: string) => `${found.from}:${found.line} imports ${found.to}: ${why}`
  if (!target.startsWith('src/')) return bad('src/ stands on its own')
  if (from === undefined) {
    const isKit = found.from === 'src/testing.ts' && target.endsWith('/conformance.ts')
    const isPublic = to === 'app' || to === 'core' || target.endsWith('/contract.ts') || isKit
    return isPublic ? undefined : bad('the entry names app/, core/ and contracts only')
  }
  if (from === 'cli' || from === to) return undefined
  if (from === 'core') return bad('core/ imports nothing of ours')
  if (from === 'app') return to === 'cli' ? bad('app/ does not know the command line') : undefined
  if (to === 'core') return undefined
  if (from === 'protocol' && to === 'jobs') return undefined // job postings have names of their own on the wire
  if (from === 'jobs-store' && to === 'jobs') return undefined // it keeps what jobs/ works out
  if (DRIVERS.includes(to!)) return found.from.includes(to!) ? undefined : bad(`only what is named ${to} uses it`)
  return target === `src/${to}/contract.ts` ? undefined : bad('a stage imports itself, core/ and contracts')
}

const sources = (pattern: string) => globSync(pattern, { cwd: ROOT }).filter((file) => !file.endsWith('.test.ts'))

test('every folder of src has its place in the rule', () => {
  const folders = new Set(sources('src/*/**/*.ts').map((file) => folderOf(file)!))
  assert.deepEqual(
    [...folders].filter((name) => ![...STAGES, ...DRIVERS, ...COMPOSERS, 'core'].includes(name)),
    [],
  )
})

test('core, the stages and the composition root import what they may', () => {
  const files = sources('src/**/*.ts')
  const imports = files.flatMap(importsOf)
  assert.ok(files.length > 100 && imports.length > 400, 'the imports are not found any more')
  assert.deepEqual(
    imports.map(problemOf).filter((problem) => problem !== undefined),
    [],
  )
})

test('every import leads to a file', () => {
  const imports = sources('{src,scrapers,test,bench,scripts,docs,deploy}/**/*.ts').flatMap(importsOf)
  const known = new Set(globSync('{src,scrapers,test,bench,scripts,docs,deploy}/**/*.ts', { cwd: ROOT }))
  const lost = imports.filter((found) => found.to.startsWith('.') && !known.has(targetOf(found)!))
  assert.deepEqual(lost, [])
})

test('scrapers import the public entry only', () => {
  const files = sources('{scrapers,templates}/**/*.ts')
  const problems = files
    .flatMap(importsOf)
    .filter(({ to }) => /^\.\.\/\.\./.test(to) || (to.startsWith('sluice') && PUBLIC[to] === undefined))
  assert.ok(files.length > 0)
  assert.deepEqual(problems, [])
})

test('an import against the rule is found', () => {
  const of = (from: string, to: string) => problemOf({ from, to, line: 1 })
  assert.match(of('src/core/task.ts', '../crawl/crawl.ts')!, /core\/ imports nothing/)
  assert.match(of('src/core/task.ts', '../frontier/contract.ts')!, /core\/ imports nothing/)
  assert.match(of('src/crawl/crawl.ts', '../fetch/http/http.ts')!, /a stage imports/)
  assert.match(of('src/frontier/sqlite/engine.ts', '../../sinks/csv.ts')!, /a stage imports/)
  assert.match(of('src/sinks/csv.ts', '../app/config.ts')!, /a stage imports/)
  assert.match(of('src/app/run.ts', '../cli/run.ts')!, /command line/)
  assert.match(of('src/fetch/http/http.ts', 'sluice')!, /a stage imports/)
  assert.match(of('src/fetch/fetcher.ts', '../../test/sluice.ts')!, /on its own/)
  assert.equal(of('src/crawl/crawl.ts', '../fetch/contract.ts'), undefined)
  assert.equal(of('src/frontier/sqlite/engine.ts', '../contract.ts'), undefined)
  assert.equal(of('src/app/run.ts', '../sinks/open.ts'), undefined)
  assert.equal(of('src/fetch/http/http.ts', 'undici'), undefined)
})
