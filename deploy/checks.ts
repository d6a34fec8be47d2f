/** What a deployment file may name: commands, options, ports, images and times are compared with the code. Each check lists problems. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Command } from 'commander'
import { parseAllDocuments } from 'yaml'
import { defineCommands } from '../src/cli/commands.ts'
import { envName, OPTIONS, optionSpecs } from '../src/config/option-table.ts'
import { parseDurationMs } from '../src/core/options.ts'

export const ROOT = new URL('..', import.meta.url).pathname
export const DRAIN_MS: number = OPTIONS.drainTimeout.schema.parse(undefined)
/** Where `serve` listens, and where workers of a fleet are told to. */
export const PORTS = { serve: 7700, worker: 9090 } as const

export type Json = ReturnType<typeof JSON.parse>

export const textOf = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

/** All documents of a file. Throws on what is no YAML. */
export function documentsOf(text: string): Json[] {
  return parseAllDocuments(text, { merge: true }).map((document) => {
    if (document.errors.length > 0) throw document.errors[0]
    return document.toJS()
  })
}

/** As compose does it: the file is read first, then its texts are filled in where they say `${NAME:-default}`; numbers of replicas are numbers. */
export function filledIn(compose: Json, variables: Readonly<Record<string, string>> = {}): Json {
  const fill = (text: string) =>
    text.replace(/\$\{(\w+):-([^}]*)\}/g, (_, name: string, otherwise: string) => variables[name] || otherwise)
  return JSON.parse(JSON.stringify(compose), (name, value) => {
    if (typeof value !== 'string') return value
    return name === 'replicas' ? Number(fill(value)) : fill(value)
  })
}

/** Why these words after `sluice` could not be typed. */
export async function commandProblems(words: readonly string[]): Promise<string[]> {
  const program = new Command('sluice')
  await defineCommands(program, undefined)
  const command = program.commands.find((known) => known.name() === words[0])
  if (command === undefined) return [`there is no command ${words[0]}`]
  command.exitOverride().configureOutput({ writeErr: () => {} })
  try {
    const { operands, unknown } = command.parseOptions(words.slice(1))
    const isTooMuch = operands.length > command.registeredArguments.length
    return [...unknown, ...(isTooMuch ? operands : [])].map((word) => `${words[0]} does not take ${word}`)
  } catch (error) {
    return [(error as Error).message]
  }
}

/** Of the names that begin with SLUICE_, those that mean nothing. */
export function variableProblems(names: Iterable<string>): string[] {
  const known = new Set(['SLUICE_API_KEY', ...optionSpecs.map(([name]) => envName(name))])
  return [...names]
    .filter((name) => name.startsWith('SLUICE_') && !known.has(name.replace(/_FILE$/, '')))
    .map((name) => `${name} is no option`)
}

/** What our Dockerfile makes: `sluice:0.1.0` of slim, `sluice-browser:0.1.0` of the other. */
export function ownImages(dockerfile: string, version: string): string[] {
  const targets = [...dockerfile.matchAll(/^FROM \S+ AS (\S+)$/gm)].map(({ 1: target }) => target)
  return [
    targets.includes('slim') ? `sluice:${version}` : '',
    targets.includes('browser') ? `sluice-browser:${version}` : '',
  ]
}

/** An image is ours, or says its version to the last digit: tags such as `latest`, `7` or `7-alpine` move. */
export function imageProblems(image: string, own: readonly string[]): string[] {
  const name = image.replace(/^registry\.example\.com\//, '')
  if (own.includes(name)) return []
  if (/^(?:.*\/)?sluice(?:-\w+)?:/.test(name)) return [`${image} is no target of the Dockerfile`]
  return /:v?\d+\.\d+\.\d+(?:-[\w.-]+)?(?:@sha256:[0-9a-f]{64})?$/.test(name) ? [] : [`${image} is not pinned`]
}

/** A process is killed after its grace period: a drain must fit in, with something to spare. */
export function graceProblems(
  graceMs: number,
  words: readonly string[],
  environment: Record<string, string>,
): string[] {
  const flag = words.indexOf('--drain-timeout')
  const told = flag >= 0 ? words[flag + 1] : environment['SLUICE_DRAIN_TIMEOUT']
  const drainMs = told === undefined ? DRAIN_MS : parseDurationMs(told)
  return graceMs >= drainMs + 5_000 ? [] : [`grace ${graceMs} ms is too short for a drain of ${drainMs} ms`]
}

/** Below this much free memory a worker adds no browser page and no process for files: more than half of what it has is too much. */
export function reserveProblems(limitBytes: number, environment: Record<string, string>): string[] {
  const reserveBytes: number = OPTIONS.memoryReserve.schema.parse(environment['SLUICE_MEMORY_RESERVE'])
  return reserveBytes * 2 <= limitBytes ? [] : ['its reserve of memory leaves too little to grow']
}

export const hasBrowser = (image: string): boolean => /(?:^|\/)sluice-browser:/.test(image)

/** How a worker is started. */
export interface WorkerWords {
  words: readonly string[]
  image: string
}

/** Pages, files, pages in browsers: a region of which one has no workers leaves its runs standing. '' is runs without a region. */
export function partProblems(workers: readonly WorkerWords[]): string[] {
  const told = (words: readonly string[], flag: string) => (words.includes(flag) ? words[words.indexOf(flag) + 1]! : '')
  const regions = new Set(['', ...workers.map(({ words }) => told(words, '--region'))])
  // Who takes only some scrapers, or tasks of the protocol, takes not every run.
  const all = workers.filter(({ words }) => !words.includes('--scraper') && !words.includes('--type'))
  return [...regions].flatMap((region) => {
    const here = all.filter(({ words }) => region === '' || told(words, '--region') === region)
    const pages = here.filter(({ words }) => told(words, '--only') !== 'files')
    const parts = {
      pages,
      files: here.filter(({ words }) => told(words, '--only') !== 'pages'),
      browser: pages.filter(({ image }) => hasBrowser(image)),
    }
    return Object.entries(parts)
      .filter(([, those]) => those.length === 0)
      .map(([part]) => `nobody does ${part} in ${region === '' ? 'runs without a region' : `region ${region}`}`)
  })
}
