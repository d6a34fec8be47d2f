/**
 * Builds the content of the package into `dist/`: the layout of this repository, in JavaScript. `src/` and `scrapers/` are
 * compiled, with types; `templates/` and `bin/` are copied; a `package.json` lets the bundled scrapers find `sluice`. Because the
 * layout is the same, every relative path in the code is valid in both. The compiler rewrites imports to `.js`; other references
 * to modules (`new URL('./x.ts', import.meta.url)`, imports in types) are rewritten here, and any that remain are an error.
 * Finally `bundle.ts` joins the modules that a run loads first.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { joinModules } from './bundle.ts'

const ROOT = join(import.meta.dirname, '..')
export const DIST = join(ROOT, 'dist')
const NOT_SHIPPED = ['**/*.test.ts', '**/*.test-kit.ts']

export interface Manifest {
  name: string
  version: string
  exports: Record<string, string>
  bin: Record<string, string>
  scripts?: Record<string, string>
  devDependencies?: Record<string, string>
  dependencies: Record<string, string>
  peerDependencies: Record<string, string>
}

export async function build(): Promise<void> {
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest
  rmSync(DIST, { recursive: true, force: true })
  mkdirSync(DIST)
  compile()
  for (const file of globSync('**/*.{js,d.ts}', { cwd: DIST })) nameModules(join(DIST, file))
  removeInnerTypes(Object.values(manifest.exports))
  const entries = Object.values(manifest.exports).map((file) => file.replace(/^\.\/src\/|\.ts$/g, '').concat('.js'))
  await joinModules(join(DIST, 'src'), entries)
  for (const file of globSync('**/*.d.ts', { cwd: DIST }))
    excuseOptionalTypes(join(DIST, file), Object.keys(manifest.peerDependencies))
  for (const folder of ['bin', 'templates']) cpSync(join(ROOT, folder), join(DIST, folder), { recursive: true })
  writeFileSync(join(DIST, 'package.json'), `${JSON.stringify(packaged(manifest, '.'), null, 2)}\n`)
}

/** The manifest of the package: JavaScript entries with their types, nothing that only developers need. */
export function packaged(manifest: Manifest, folder: string): object {
  const { scripts: _scripts, devDependencies: _dev, exports, bin, ...rest } = manifest
  const entries = Object.entries(exports).map(([entry, file]) => {
    const base = `${folder}/${file.replace(/^\.\/|\.ts$/g, '')}`
    return [entry, { types: `${base}.d.ts`, default: `${base}.js` }]
  })
  const commands = Object.entries(bin).map(([name, file]) => [name, `${folder}/${file}`.replace(/^\.\//, '')])
  return { ...rest, bin: Object.fromEntries(commands), exports: Object.fromEntries(entries) }
}

function compile(): void {
  const options = {
    rootDir: ROOT,
    outDir: DIST,
    noEmit: false,
    declaration: true,
    rewriteRelativeImportExtensions: true,
    noUnusedLocals: false,
  }
  const config = join(DIST, 'tsconfig.json')
  const include = ['../src', '../scrapers']
  const exclude = NOT_SHIPPED.map((pattern) => `../${pattern}`)
  writeFileSync(config, JSON.stringify({ extends: '../tsconfig.json', compilerOptions: options, include, exclude }))
  const { status, stdout, error } = spawnSync(
    process.execPath,
    // With several threads, shared files are checked once per thread: 18 s of CPU instead of 10 s.
    [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', config, '--singleThreaded'],
    { encoding: 'utf8' },
  )
  rmSync(config)
  if (status !== 0) throw new Error(`the compiler refused:\n${error?.message ?? stdout}`)
}

const BY_URL = /(new URL\((['"])\.\/[\w./-]+)\.ts\2(?=, import\.meta\.url\))/g
const IN_TYPES = /((?:\bfrom |\bimport\()(['"])\.{1,2}\/[\w./-]+)\.ts\2/g
const LEFT_OVER = /(?:\bfrom |\bimport ?\(|new URL\()['"]\.[\w./-]*\.ts['"]/

function nameModules(file: string): void {
  const before = readFileSync(file, 'utf8')
  const text = before.replace(file.endsWith('.d.ts') ? IN_TYPES : BY_URL, '$1.js$2')
  const left = LEFT_OVER.exec(text.replace(/^\s*(?:\*|\/\/|\/\*\*).*$/gm, ''))
  if (left !== null) throw new Error(`${file} names a TypeScript file: ${left[0]}`)
  if (text !== before) writeFileSync(file, text)
}

/** Types that no entry refers to are useless: two thirds of them, 2 MB on disk. */
function removeInnerTypes(entries: readonly string[]): void {
  const needed = new Set<string>()
  const need = (file: string) => {
    if (needed.has(file)) return
    needed.add(file)
    for (const { 1: to } of readFileSync(file, 'utf8').matchAll(/(?:\bfrom |\bimport\(?)['"](\.[\w./-]+)\.js['"]/g))
      need(`${join(dirname(file), to!)}.d.ts`)
  }
  for (const entry of entries) need(join(DIST, entry.replace(/\.ts$/, '.d.ts')))
  for (const file of globSync('**/*.d.ts', { cwd: DIST })) if (!needed.has(join(DIST, file))) rmSync(join(DIST, file))
}

/** Without an optional package its types become `any`, even for projects that check library types. */
function excuseOptionalTypes(file: string, names: readonly string[]): void {
  const before = readFileSync(file, 'utf8')
  const text = before.replace(/^import .*from ['"]([^'"]+)['"];?$/gm, (line, name: string) =>
    names.includes(name) ? `// @ts-ignore: an optional package\n${line}` : line,
  )
  if (text !== before) writeFileSync(file, text)
}

if (import.meta.main) {
  await build()
  console.log(`built ${dirname(DIST) === ROOT ? 'dist' : DIST}`)
}
