/** The sinks of a run: the requested formats, else the scraper's own, and every `--sink`. A resumed run keeps its sinks. */
import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { ConfigValues } from '../../config/option-table.ts'
import { ScrapeError } from '../../core/errors.ts'
import type { SinkSpec } from '../../core/scraper.ts'
import type { CompiledScraper } from '../../crawl/compile-scraper.ts'
import type { Frontier } from '../../frontier/contract.ts'
import type { RunFolder } from '../../runs/run-folder.ts'
import type { Sink } from '../../sinks/contract.ts'
import { openSinks } from '../../sinks/open.ts'

const DEFAULT_FORMATS = 'jsonl,csv'

type Spec = string | SinkSpec<string>

interface KeptSinks {
  specs: Spec[]
  formulaSafe: boolean
}

export async function openRunSinks(
  compiled: CompiledScraper,
  folder: RunFolder,
  frontier: Frontier,
  values: ConfigValues,
): Promise<Sink[]> {
  const { scraper, fields } = compiled
  const kept = await keptSinks(frontier)
  const isAsked = values.format !== undefined || values.sink.length > 0
  const specs = kept === undefined || isAsked ? wantedSpecs(compiled, values) : kept.specs
  if (kept === undefined) refuseOverwriting(specs)
  const csvColumns = (scraper.sinks as readonly SinkSpec<string>[] | undefined)?.find(
    (sink) => sink.kind === 'csv',
  )?.columns
  const setup = {
    scraper: scraper.name,
    runId: folder.runId,
    fields,
    folder: folder.path,
    csvColumns,
  }
  return await openSinks(specs as readonly (string | SinkSpec)[], setup, {
    formulaSafe: kept?.formulaSafe ?? values.formulaSafe, // must not change in the middle of a file
  })
}

/** Called once the sinks are open: a rejected choice must not be what the next --resume uses. */
export async function rememberSinks(
  frontier: Frontier,
  compiled: CompiledScraper,
  values: ConfigValues,
): Promise<void> {
  if ((await frontier.getMeta('sinks')) !== undefined) return
  const sinks: KeptSinks = { specs: wantedSpecs(compiled, values), formulaSafe: values.formulaSafe }
  await frontier.setMeta('sinks', JSON.stringify(sinks))
}

async function keptSinks(frontier: Frontier): Promise<KeptSinks | undefined> {
  const kept = await frontier.getMeta('sinks')
  return kept === undefined ? undefined : JSON.parse(kept)
}

function wantedSpecs({ scraper }: CompiledScraper, values: ConfigValues): Spec[] {
  const own = (scraper.sinks ?? []) as readonly Spec[]
  const formats = values.format === undefined ? (own.length > 0 ? own : [DEFAULT_FORMATS]) : [values.format]
  return [...formats, ...values.sink]
}

/** A new run starts its files from scratch. Files in its own folder are its own; any other may belong to someone else. */
function refuseOverwriting(specs: readonly Spec[]): void {
  for (const spec of specs) {
    const path =
      typeof spec === 'string'
        ? /^file:(?:\/\/)?(.+)$/i.exec(spec)?.[1]
        : spec.kind === 'sqlite'
          ? undefined
          : spec.path
    if (path === undefined || !existsSync(path) || statSync(path).size === 0) continue
    throw new ScrapeError('E_OUTPUT', `${resolve(path)} exists already, and a new run would overwrite it`, {
      fix: 'Name another file, move this one away, or --resume the run it belongs to.',
    })
  }
}
