/** Looks at a run from outside while it may be going on in another process. Reading never takes the run's lock. */
import { existsSync, realpathSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { ScrapeError } from '../core/errors.ts'
import type { RunRecord } from '../core/run.ts'
import type { Frontier, FrontierStats } from '../frontier/contract.ts'
import { openFrontier } from '../frontier/open.ts'
import type { ConfigValues } from './config.ts'
import { findRun, RunFolder } from './run-folder.ts'

/** A working run saves its record twice a second: one this old belongs to a process that is gone, or badly stuck. */
const RECORD_FRESH_MS = 5_000

export interface OpenRun extends AsyncDisposable {
  readonly folder: RunFolder
  readonly record: RunRecord
  /** A process works on it now. */
  readonly isAlive: boolean
  /** Undefined when the queue is gone with its process (`memory:`) or lives elsewhere and nobody said where. */
  readonly frontier: Frontier | undefined
}

export async function openRun(
  word: string | undefined,
  { out, frontier: frontierUrl }: Pick<ConfigValues, 'out' | 'frontier'>,
): Promise<OpenRun> {
  const found = findRun(out, word)
  const folder = new RunFolder(realpathSync(found.path)) // `books/latest` is a link, and no run id
  const record = folder.readRecord()!
  const isAlive = isWorkedOn(folder, record)
  // Whoever names no queue means the run's own.
  const frontier = await openExisting(folder, frontierUrl === 'sqlite:' ? record.frontier : frontierUrl)
  return {
    folder,
    record: isAlive ? record : { ...record, ...lostState(record) },
    isAlive,
    frontier,
    [Symbol.asyncDispose]: async () => frontier?.[Symbol.asyncDispose](),
  }
}

/** The queue of a run, or an error that says why there is none. */
export function frontierOf(run: OpenRun): Frontier {
  if (run.frontier !== undefined) return run.frontier
  const isMemory = run.record.frontier.startsWith('memory')
  throw new ScrapeError('E_RUN_NOT_FOUND', `the queue of run ${run.record.id} is not here`, {
    notes: [
      isMemory
        ? 'it ran on the memory: frontier, which ends with its process'
        : `there is no frontier.db in ${run.folder.path}`,
    ],
    fix: isMemory
      ? 'Run again without --frontier memory: to keep dead letters.'
      : 'Name the queue with --frontier URL, as the run did.',
  })
}

/** Numbers of the run now: the queue's own where it is here, else what the record says. */
export async function runStats({ frontier, record }: OpenRun): Promise<FrontierStats> {
  if (frontier !== undefined) return await frontier.stats()
  const { ok, failed, remaining, dead } = record.pages
  return {
    pending: remaining,
    claimed: 0,
    completed: ok,
    failed,
    dead,
    remaining,
    seen: ok + failed + remaining,
    items: record.items.new,
    isPaused: false,
    pauseReason: undefined,
    lanes: {},
    hosts: [],
  }
}

/** What to type to go on with a run, without the program's name. */
export function resumeCommand({ folder, record }: Pick<OpenRun, 'folder' | 'record'>, out: string): string[] {
  const { scraper, source, id } = record
  if (scraper.startsWith('crawl-')) return ['crawl', '--resume', id, ...outFlag(out)]
  return ['run', source, '--resume', folder.runId, ...outFlag(out)]
}

/** Commands shown to a person must find the run again. */
export function outFlag(out: string): string[] {
  return out === 'runs' ? [] : ['--out', out]
}

async function openExisting(folder: RunFolder, url: string): Promise<Frontier | undefined> {
  if (url === 'sqlite:' || url === 'sqlite') {
    const path = folder.file('frontier.db')
    return existsSync(path) ? await openFrontier(`sqlite:${path}`) : undefined
  }
  if (url.startsWith('memory:')) return undefined
  const file = /^sqlite:(?:\/\/)?(.+)$/.exec(url)?.[1]
  if (file !== undefined && !existsSync(file)) return undefined // opening would make an empty one
  const frontier = await openFrontier(url)
  const owner = await frontier.getMeta('run')
  if (owner === folder.runId) return frontier
  await frontier[Symbol.asyncDispose]()
  throw new ScrapeError('E_OPTION', `the frontier ${url} belongs to run ${owner ?? '(none)'}, not to ${folder.runId}`)
}

function isWorkedOn(folder: RunFolder, record: RunRecord): boolean {
  if (record.state !== 'running') return false
  if (Date.now() - statSync(folder.file('run.json')).mtimeMs < RECORD_FRESH_MS) return true
  return isLocked(folder.file('lock.db'))
}

/** Asks for a moment's look at the lock, which its holder refuses. Only a silent run is asked, so no start is disturbed. */
function isLocked(path: string): boolean {
  if (!existsSync(path)) return false
  const lock = new DatabaseSync(path, { readOnly: true })
  try {
    lock.prepare('select count(*) from sqlite_schema').get()
    return false
  } catch {
    return true
  } finally {
    lock.close()
  }
}

function lostState(record: RunRecord): Partial<RunRecord> {
  return record.state === 'running' ? { state: 'stopped', reason: 'its process ended without a word' } : {}
}
