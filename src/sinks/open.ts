/** Turns the requested outputs (`--format`, `--sink`, the scraper's own list) into sinks, not opened yet. */
import { extname, join, resolve } from 'node:path'
import { ScrapeError } from '../core/errors.ts'
import type { SinkSpec } from '../core/scraper.ts'
import type { Sink, SinkSetup } from './contract.ts'
import { createCsvSink } from './csv.ts'
import { createJsonlSink } from './jsonl.ts'

const KNOWN =
  'formats jsonl, csv, parquet, dual (csv and jsonl), json (same as jsonl); URLs sqlite:PATH, file:PATH.csv, file:PATH.jsonl, file:PATH.parquet'

const FORMATS: Record<string, readonly SinkSpec['kind'][]> = {
  jsonl: ['jsonl'],
  json: ['jsonl'],
  csv: ['csv'],
  dual: ['csv', 'jsonl'],
  parquet: ['parquet'],
}
const KIND_BY_EXTENSION: Record<string, SinkSpec['kind']> = {
  '.jsonl': 'jsonl',
  '.ndjson': 'jsonl',
  '.json': 'jsonl',
  '.csv': 'csv',
  '.parquet': 'parquet',
  '.db': 'sqlite',
  '.sqlite': 'sqlite',
}

interface SinkOptions {
  /** For CSV sinks that do not set it themselves; default false. */
  formulaSafe?: boolean
}

/**
 * Each spec is a format or a comma-separated list of formats (`dual`, `jsonl,csv`: files `items.…` in the run folder), a URL, or
 * a spec of the scraper. The same output named twice is one sink. All problems are reported in one E_OPTION.
 */
export async function openSinks(
  specs: readonly (string | SinkSpec)[],
  setup: SinkSetup,
  options: SinkOptions = {},
): Promise<Sink[]> {
  const sinks = new Map<string, Sink>()
  const problems: string[] = []
  for (const text of specs.flatMap((spec) => (typeof spec === 'string' && !isUrl(spec) ? spec.split(',') : [spec]))) {
    const wanted = typeof text === 'string' ? parseSpec(text.trim()) : [text]
    if (wanted.length === 0) problems.push(`"${String(text).replace(/^.*@/s, '…@')}" is not a known sink`)
    for (const spec of wanted) {
      if (spec.kind === 'sqlite' && spec.path === undefined) {
        problems.push('sqlite needs a path: sqlite:PATH')
        continue
      }
      const path = spec.path === undefined ? join(setup.folder, `items.${spec.kind}`) : resolve(spec.path)
      if (!sinks.has(path)) sinks.set(path, await createSink(spec, path, setup, options))
    }
  }
  if (problems.length === 0) return [...sinks.values()]
  throw new ScrapeError('E_OPTION', problems.join('; '), { notes: [`known: ${KNOWN}`], fix: `Use one of: ${KNOWN}.` })
}

function isUrl(spec: string): boolean {
  return /^[a-z][a-z0-9+.-]*:/i.test(spec)
}

/** Empty if it is unknown. */
function parseSpec(text: string): SinkSpec[] {
  const match = /^(file|sqlite):(?:\/\/)?(.+)$/i.exec(text)
  if (match === null) return (Object.hasOwn(FORMATS, text) ? FORMATS[text]! : []).map((kind) => ({ kind }))
  const path = match[2]!
  if (match[1]!.toLowerCase() === 'sqlite') return [{ kind: 'sqlite', path }]
  const kind = KIND_BY_EXTENSION[extname(path).toLowerCase()]
  return kind === undefined ? [] : [{ kind, path }]
}

/** A sink's position is stored under its name, so the name must be the same at every start of the run. */
async function createSink(spec: SinkSpec, path: string, setup: SinkSetup, options: SinkOptions): Promise<Sink> {
  const name = spec.path === undefined ? spec.kind : `${spec.kind === 'sqlite' ? 'sqlite' : 'file'}:${spec.path}`
  switch (spec.kind) {
    case 'jsonl':
      return createJsonlSink({ path, name })
    case 'csv': {
      const formulaSafe = spec.formulaSafe ?? options.formulaSafe ?? false
      const columns = spec.columns ?? setup.csvColumns ?? setup.fields
      return createCsvSink({ path, name, columns, formulaSafe })
    }
    case 'parquet': {
      const { ParquetSink } = await import('./parquet.ts')
      return new ParquetSink({ path, name, fields: setup.fields })
    }
    case 'sqlite': {
      const { SqliteSink } = await import('./sqlite.ts')
      return new SqliteSink({ path, name, setup })
    }
    default:
      return spec.kind satisfies never
  }
}
