/** The sinks of a run: one for each format, as the scraper would have it, and every `--sink`. */
import type { CompiledScraper } from '../crawl/compiled.ts'
import type { Sink } from '../sinks/contract.ts'
import { createCsvSink } from '../sinks/csv.ts'
import { createJsonlSink } from '../sinks/jsonl.ts'
import type { ConfigValues } from './config.ts'
import type { RunFolder } from './run-folder.ts'

export function openRunSinks(compiled: CompiledScraper, folder: RunFolder, values: ConfigValues): Sink[] {
  const { scraper, fields } = compiled
  const columns =
    (scraper.sinks?.find((sink) => sink.kind === 'csv')?.columns as readonly string[] | undefined) ?? fields
  return [
    createJsonlSink({ path: folder.file('items.jsonl') }),
    createCsvSink({ path: folder.file('items.csv'), columns, fields, formulaSafe: values.formulaSafe }),
  ]
}
