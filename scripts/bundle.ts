/**
 * Joins the modules of the package that `sluice run` loads before its first request: resolving, reading and linking 180 files costs 45 ms.
 * Each module stays in its place as one line that re-exports its names from the joined file. A module therefore still exists only once,
 * however it is imported, and the exports of the package do not change.
 *
 * There are three joined files, so that other commands do not load more than before:
 *   commands.js   what commands need as soon as they are defined
 *   queue.js      what commands without an HTTP client need later
 *   run.js        the rest: everything that leads to the HTTP client
 */
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import * as esbuild from 'esbuild'

/** What `sluice run` imports on its way to the first request, each with everything it imports itself. */
export const RUN = [
  'cli/run.js',
  'cli/run-here.js',
  'config/load-scraper.js',
  'config/scraper-arguments.js',
  'app/demo/demo-for-run.js',
  'frontier/sqlite/engine.js',
  'runs/file-records.js',
  'index.js',
]
/** Left alone: `--version` needs nothing else, and a command that fetches nothing little more. */
export const FIRST = ['cli/main.js', 'cli/program.js']
const HTTP_CLIENT = 'fetch/net/undici.js'
const FOLDER = 'joined'

const STATIC = /^(?:import|export) (?:[^'";]* from )?['"](\.[^'"]+)['"]/gm
const LATER = /(?:\bimport\(|new URL\()['"](\.[^'"]+\.js)['"]/g

/** `entries` are the modules that others may import. */
export async function joinModules(source: string, entries: readonly string[]): Promise<void> {
  const modules = new Modules(source)
  const withoutHttp = (starts: readonly string[]) =>
    new Set(
      starts
        .map((start) => modules.loadedWith([start]))
        .filter((loaded) => !loaded.has(HTTP_CLIENT))
        .flatMap((loaded) => [...loaded]),
    )
  const commands = withoutHttp([...globSync('cli/*.js', { cwd: source }), 'index.js'])
  const others = withoutHttp([...entries, ...modules.loadedLater()])
  const first = modules.loadedWith(FIRST)
  const wanted = [...modules.loadedWith(RUN)].filter((file) => !first.has(file))
  const fileOf = (file: string) => {
    if (commands.has(file)) return 'commands.js'
    return others.has(file) ? 'queue.js' : 'run.js'
  }
  const places = new Map(wanted.map((file, i) => [file, { joined: fileOf(file), prefix: `m${i}_` }]))
  const names = await exportsOf(source, wanted)
  const reExport = (file: string, folder: string) => {
    const { joined, prefix } = places.get(file)!
    const list = names.get(file)!.map((name) => `${prefix}${name} as ${name}`)
    return `export { ${list.join(', ')} } from "./${relative(folder, join(FOLDER, joined))}"\n`
  }
  const built = await Promise.all(
    [...new Set([...places.values()].map(({ joined }) => joined))].map(async (joined) => {
      const own = wanted.filter((file) => places.get(file)!.joined === joined)
      const exports = own.map((file) => {
        const { prefix } = places.get(file)!
        return `export { ${names.get(file)!.map((name) => `${name} as ${prefix}${name}`)} } from "../${file}"`
      })
      const elsewhere = (file: string) => (places.has(file) ? reExport(file, FOLDER) : undefined)
      return { joined, text: await bundled(source, exports.join('\n'), { own: new Set(own), elsewhere }) }
    }),
  )
  mkdirSync(join(source, FOLDER))
  for (const { joined, text } of built) writeFileSync(join(source, FOLDER, joined), text)
  for (const file of wanted) writeFileSync(join(source, file), reExport(file, dirname(file)))
}

/** Who imports whom, by paths in the source folder. */
class Modules {
  readonly #source: string

  constructor(source: string) {
    this.#source = source
  }

  loadedWith(files: readonly string[], loaded = new Set<string>()): Set<string> {
    for (const file of files) {
      if (loaded.has(file)) continue
      loaded.add(file)
      this.loadedWith(this.#named(file, STATIC), loaded)
    }
    return loaded
  }

  /** Modules that are loaded when they are needed, also by a process or thread of their own. */
  loadedLater(): string[] {
    return globSync('**/*.js', { cwd: this.#source }).flatMap((file) => this.#named(file, LATER))
  }

  #named(file: string, pattern: RegExp): string[] {
    const text = readFileSync(join(this.#source, file), 'utf8')
    return [...text.matchAll(pattern)].map(([, to]) => join(dirname(file), to!))
  }
}

async function exportsOf(source: string, files: readonly string[]): Promise<Map<string, string[]>> {
  const { metafile } = await esbuild.build({
    entryPoints: files.map((file) => join(source, file)),
    absWorkingDir: source,
    outdir: source,
    format: 'esm',
    metafile: true,
    write: false,
  })
  return new Map(Object.values(metafile.outputs).map(({ entryPoint, exports }) => [entryPoint!, exports]))
}

interface Membership {
  own: ReadonlySet<string>
  /** The line that re-exports a module of another joined file; undefined for modules that stay as they are. */
  elsewhere: (file: string) => string | undefined
}

async function bundled(source: string, contents: string, { own, elsewhere }: Membership): Promise<string> {
  const folder = join(source, FOLDER)
  const plugin: esbuild.Plugin = {
    name: 'join',
    setup(build) {
      build.onResolve({ filter: /^\./ }, ({ path, resolveDir, kind }) => {
        const file = relative(source, resolve(resolveDir, path))
        if (own.has(file)) return { path: join(source, file) }
        if (kind === 'import-statement' && elsewhere(file) !== undefined) return { path: file, namespace: 'elsewhere' }
        return { path: path.startsWith('./') && resolveDir === folder ? path : `../${file}`, external: true }
      })
      build.onLoad({ filter: /./, namespace: 'elsewhere' }, ({ path }) => ({
        contents: elsewhere(path)!,
        resolveDir: folder,
      }))
      build.onLoad({ filter: /\.js$/ }, ({ path }) => ({
        contents: inPlace(readFileSync(path, 'utf8'), relative(source, path)),
      }))
    },
  }
  const { outputFiles } = await esbuild.build({
    stdin: { contents, resolveDir: folder },
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    packages: 'external',
    plugins: [plugin],
    write: false,
  })
  return outputFiles[0]!.text
}

/** Paths that a module makes from its own place still begin there. */
function inPlace(text: string, file: string): string {
  const other = /\bimport\.meta\.(?!url\b|filename\b|resolve\b)\w+/.exec(text)
  if (other !== null) throw new Error(`${file}: ${other[0]} is not known to scripts/bundle.ts`)
  return text
    .replace(/\bimport\.meta\.url\b/g, `new URL('../${file}', import.meta.url).href`)
    .replace(/\bimport\.meta\.filename\b/g, `(import.meta.dirname.replace(/${FOLDER}$/, '') + '${file}')`)
}
