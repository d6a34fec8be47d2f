/** The sinks of a run: the formats asked for, else the scraper's own, and every `--sink`. A resumed run keeps those it has. */
import type { SinkSpec } from '../core/scraper.ts'
import type { CompiledScraper } from '../crawl/compiled.ts'
import type { Frontier } from '../frontier/contract.ts'
import type { Sink } from '../sinks/contract.ts'
import { openSinks } from '../sinks/open.ts'
import type { ConfigValues } from './config.ts'
import type { RunFolder } from './run-folder.ts'

const DEFAULT_FORMATS = 'jsonl,csv'

export async function openRunSinks(
  compiled: CompiledScraper,
  folder: RunFolder,
  frontier: Frontier,
  values: ConfigValues,
): Promise<Sink[]> {
  const { scraper, fields } = compiled
  const own: readonly SinkSpec<string>[] = scraper.sinks ?? []
  const specs = (await keptSpecs(frontier, values)) ?? [
    ...(values.format !== undefined ? [values.format] : own.length > 0 ? own : [DEFAULT_FORMATS]),
    ...values.sink,
  ]
  const csvColumns = own.find((sink) => sink.kind === 'csv')?.columns
  const setup = {
    scraper: scraper.name,
    runId: folder.runId,
    fields,
    folder: folder.path,
    ...(csvColumns === undefined ? {} : { csvColumns }),
  }
  const sinks = await openSinks(specs as readonly (string | SinkSpec)[], setup, { formulaSafe: values.formulaSafe })
  await frontier.setMeta('sinks', JSON.stringify(specs))
  return sinks
}

/** What the run wrote to before, unless somebody says otherwise now (the drain then refuses what does not fit). */
async function keptSpecs(frontier: Frontier, values: ConfigValues): Promise<(string | SinkSpec<string>)[] | undefined> {
  if (values.format !== undefined || values.sink.length > 0) return undefined
  const kept = await frontier.getMeta('sinks')
  return kept === undefined ? undefined : JSON.parse(kept)
}
