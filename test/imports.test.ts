/**
 * Who may import whom, read from the imports themselves:
 *
 *   core/              nothing of ours
 *   drivers/           core/; postgres/ and redis/ are for files with that server in their path
 *   a stage            itself, core/, drivers/, and any stage's contract.ts
 *   ONE_WAY            plus the folders listed there
 *   app/               everything but cli/; it is the composition root
 *   cli/               everything; it is the command line
 *   index.ts           the public names: app/, core/ and contracts
 *   testing.ts         the same, and the conformance kits
 *   scrapers/          the public entries only
 *
 * No folder imports another that imports it, directly or through others, at any depth.
 * Tests may import whatever they need, so *.test.ts files and test kits are exempt.
 */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { PRINT_LOADED } from './print-loaded.ts'
import { startBooksSite } from './site/books.ts'
import { sluice, temporaryFolder } from './sluice.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const STAGES = ['sources', 'frontier', 'fetch', 'extract', 'sinks', 'files', 'observe', 'server']
/** In addition to itself, core/ and drivers/. */
const ONE_WAY: Readonly<Record<string, readonly RegExp[]>> = {
  crawl: [/^\w+\/contract\.ts$/, /^extract\/html\.ts$/],
  config: [/^fetch\/net\/proxy-url\.ts$/],
  runs: [/^(?!app\/|cli\/)/],
  fleet: [/^(?:frontier|store)\/contract\.ts$/],
  jobs: [/^server\/history\/contract\.ts$/],
  store: [/^frontier\/contract\.ts$/, /^(?:server\/\w+|jobs\/store)\/schema\.ts$/],
  protocol: [/^store\/contract\.ts$/, /^jobs\//],
}
const PUBLIC: Readonly<Record<string, string>> = {
  sluice: 'src/index.ts',
  'sluice/client': 'src/server/api/client.ts',
  'sluice/jobs': 'src/jobs/index.ts',
  'sluice/testing': 'src/testing.ts',
}

interface Import {
  from: string
  to: string
  line: number
}

/** Imports and re-exports, including types and dynamic ones, and `import('…')` in types. */
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

/** The path in the project that an import resolves to; undefined for packages and Node's own modules. */
function targetOf({ from, to }: Import): string | undefined {
  if (to.startsWith('.'))
    return relative(ROOT, resolve(ROOT, dirname(from), to))
      .split(sep)
      .join('/')
  return PUBLIC[to]
}

const folderOf = (path: string) => /^src\/([^/]+)\//.exec(path)?.[1]

/** Why this import breaks the rule; undefined if it does not. */
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
  const driver = /^src\/drivers\/(postgres|redis)\//.exec(target)?.[1]
  if (driver !== undefined) return found.from.includes(driver) ? undefined : bad(`only what is named ${driver} uses it`)
  if (to === 'drivers') return undefined
  const others = ONE_WAY[from]
  if (others !== undefined)
    return others.some((one) => one.test(target.slice('src/'.length))) ? undefined : bad(`not one of ONE_WAY.${from}`)
  return target === `src/${to}/contract.ts` ? undefined : bad('a stage imports itself, core/, drivers/ and contracts')
}

const sources = (pattern: string) =>
  globSync(pattern, { cwd: ROOT }).filter((file) => !/\.test(?:-kit)?\.ts$/.test(file))

/** The folder directly below `root`; files directly in it are `.`, but its contract counts separately. */
function placeIn(root: string, path: string): string | undefined {
  if (!path.startsWith(`${root}/`)) return undefined
  const [first, ...rest] = path.slice(root.length + 1).split('/')
  if (rest.length > 0) return first
  return first === 'contract.ts' ? first : '.'
}

/** Folders below `root` that import each other in a circle, each with one of the imports that close it. */
export function circlesIn(root: string, imports: readonly Import[]): string[] {
  const ways = new Map<string, Map<string, Import>>()
  for (const found of imports) {
    const [from, to] = [placeIn(root, found.from), placeIn(root, targetOf(found) ?? '')]
    if (from === undefined || to === undefined || from === to) continue
    ways.set(from, (ways.get(from) ?? new Map()).set(to, found))
  }
  const reaches = (from: string, to: string, seen = new Set<string>()): boolean =>
    [...(ways.get(from)?.keys() ?? [])].some(
      (next) => next === to || (!seen.has(next) && reaches(next, to, seen.add(next))),
    )
  return [...ways].flatMap(([from, targets]) =>
    [...targets]
      .filter(([to]) => reaches(to, from))
      .map(([to, { from: file, line }]) => `${from} → ${to} → … → ${from}: ${file}:${line}`),
  )
}

test('every folder of src is covered by the rule', () => {
  const folders = new Set(sources('src/*/**/*.ts').map((file) => folderOf(file)!))
  const known = [...STAGES, ...Object.keys(ONE_WAY), 'core', 'drivers', 'app', 'cli']
  assert.deepEqual([...folders].sort(), known.sort())
})

test('each folder imports what it may', () => {
  const files = sources('src/**/*.ts')
  const imports = files.flatMap(importsOf)
  assert.ok(files.length > 100 && imports.length > 400, 'the imports are not found any more')
  assert.deepEqual(
    imports.map(problemOf).filter((problem) => problem !== undefined),
    [],
  )
})

test('no folders import each other in a circle', () => {
  const imports = sources('src/**/*.ts').flatMap(importsOf)
  const folders = new Set(sources('src/*/**/*.ts').map((file) => dirname(file)))
  const roots = new Set([...folders].map((folder) => dirname(folder).split(sep).join('/')))
  assert.ok(roots.has('src') && roots.has('src/fetch'))
  for (const root of roots) assert.deepEqual(circlesIn(root, imports), [], root)
})

test('every import resolves to a file', () => {
  const imports = sources('{src,scrapers,test,bench,scripts,docs,deploy}/**/*.ts').flatMap(importsOf)
  const known = new Set(globSync('{src,scrapers,test,bench,scripts,docs,deploy}/**/*.ts', { cwd: ROOT }))
  const lost = imports.filter((found) => found.to.startsWith('.') && !known.has(targetOf(found)!))
  assert.deepEqual(lost, [])
})

test('every shipped file is used by a shipped one: files that only tests use are named x.test.ts or x.test-kit.ts', () => {
  const used = new Set<string>()
  const use = (file: string) => {
    if (used.has(file) || !file.startsWith('src/')) return
    used.add(file)
    const threads = readFileSync(join(ROOT, file), 'utf8').matchAll(/new URL\('(\.[^']+\.ts)', import\.meta\.url\)/g)
    for (const [, to] of threads) use(join(dirname(file), to!))
    for (const found of importsOf(file)) use(targetOf(found) ?? '')
  }
  for (const entry of ['src/cli/main.ts', ...Object.values(PUBLIC)]) use(entry)
  assert.deepEqual(
    sources('src/**/*.ts').filter((file) => !used.has(file) && !file.endsWith('.d.ts')),
    [],
  )
  assert.deepEqual(
    [...used].filter((file) => /\.test(?:-kit)?\.ts$/.test(file)),
    [],
  )
})

test('scrapers import the public entry only', () => {
  const files = sources('{scrapers,templates}/**/*.ts')
  const problems = files
    .flatMap(importsOf)
    .filter(({ to }) => /^\.\.\/\.\./.test(to) || (to.startsWith('sluice') && PUBLIC[to] === undefined))
  assert.ok(files.length > 0)
  assert.deepEqual(problems, [])
})

/** What a file loads at once: its imports and theirs, without types and dynamic imports. Packages by their names. */
function loadedWith(file: string, loaded = new Set<string>()): Set<string> {
  if (loaded.has(file)) return loaded
  loaded.add(file)
  if (!file.endsWith('.ts')) return loaded
  for (const [, to] of readFileSync(join(ROOT, file), 'utf8').matchAll(
    /^(?:import|export) (?!type )(?:[^'";]* from )?'([^']+)'/gm,
  ))
    loadedWith(to!.startsWith('.') ? join(dirname(file), to!) : to!, loaded)
  return loaded
}

test('reading the options loads no HTTP client: every command does it, and most fetch nothing', () => {
  const loaded = loadedWith('src/config/config.ts')
  assert.ok(loaded.has('src/fetch/net/proxy-url.ts'))
  assert.ok(!loaded.has('src/fetch/net/undici.ts'))
})

test('the version is printed without the command line, and a run starts without the web server of the demo', () => {
  const packages = [...loadedWith('src/cli/main.ts')].filter((name) => /^(?!node:|src\/)/.test(name))
  assert.deepEqual(packages, [])
  assert.ok(loadedWith('src/cli/program.ts').has('commander'))
  // Importing node:http touches its lazy exports, which load Node's HTTP client: 30 ms.
  for (const file of ['src/cli/run.ts', 'src/cli/run-here.ts', 'src/app/demo/demo-for-run.ts'])
    assert.ok(!loadedWith(file).has('node:http'), file)
})

/** What a run has loaded when its first request leaves: 320 modules, each about 0.3 ms of its start. */
const BEFORE_FIRST_REQUEST_MAX = 330

test('the first request waits for nothing that reads pages, writes logs or speaks HTTP/2', async () => {
  using folder = temporaryFolder()
  await using site = await startBooksSite()
  const args = ['run', 'books', '--site', site.url, '--pages', '1', '--quiet', '--out', folder.path]
  const { stdout, stderr } = await sluice(args, { cwd: folder.path, env: PRINT_LOADED })
  assert.ok(stdout.startsWith('["'), stdout + stderr)
  const loaded = (JSON.parse(stdout) as string[]).map((url) => url.replace(`file://${ROOT}`, ''))
  const has = (start: string) => loaded.filter((name) => name.startsWith(start))
  assert.ok(has('src/fetch/http/').length > 10 && has('node_modules/undici/').length > 10 && has('node:net').length > 0)
  for (const start of [
    'src/extract/',
    'src/crawl/page-context.ts',
    'src/observe/progress',
    'src/observe/summary',
    'node_modules/css-what/',
    'node_modules/htmlparser2/',
    'node_modules/cheerio/',
    'node_modules/tough-cookie/',
    'node_modules/pino/',
    'node:http2',
  ])
    assert.deepEqual(has(start), [])
  const files = loaded.filter((name) => !name.startsWith('node:') && !name.startsWith('data:'))
  assert.ok(files.length <= BEFORE_FIRST_REQUEST_MAX, `${files.length} modules: which of them can wait?`)
})

test('finds an import against the rule', () => {
  const of = (from: string, to: string) => problemOf({ from, to, line: 1 })
  assert.match(of('src/core/task.ts', '../crawl/crawl.ts')!, /core\/ imports nothing/)
  assert.match(of('src/core/task.ts', '../frontier/contract.ts')!, /core\/ imports nothing/)
  assert.match(of('src/files/pool.ts', '../fetch/fetcher.ts')!, /a stage imports/)
  assert.match(of('src/frontier/sqlite/engine.ts', '../../sinks/csv.ts')!, /a stage imports/)
  assert.match(of('src/frontier/sqlite/engine.ts', '../../drivers/redis/script.ts')!, /only what is named redis/)
  assert.match(of('src/sinks/csv.ts', '../config/config.ts')!, /a stage imports/)
  assert.match(of('src/fleet/scaling.ts', '../store/sql-store.ts')!, /ONE_WAY.fleet/)
  assert.match(of('src/app/run.ts', '../cli/run.ts')!, /command line/)
  assert.match(of('src/fetch/fetcher.ts', 'sluice')!, /a stage imports/)
  assert.match(of('src/fetch/fetcher.ts', '../../test/sluice.ts')!, /on its own/)
  assert.equal(of('src/crawl/crawl.ts', '../fetch/contract.ts'), undefined)
  assert.equal(of('src/frontier/sqlite/engine.ts', '../contract.ts'), undefined)
  assert.equal(of('src/app/run.ts', '../sinks/open.ts'), undefined)
  assert.equal(of('src/fetch/fetcher.ts', 'undici'), undefined)
})

test('finds a circle, even one through a third folder', () => {
  const imports = [
    { from: 'src/a/x.ts', to: '../b/y.ts', line: 1 },
    { from: 'src/b/y.ts', to: '../c/contract.ts', line: 2 },
    { from: 'src/c/z.ts', to: '../a/x.ts', line: 3 },
    { from: 'src/d/w.ts', to: '../a/x.ts', line: 4 },
  ]
  assert.equal(circlesIn('src', imports).length, 3)
  assert.deepEqual(circlesIn('src', imports.slice(1)), [])
})
