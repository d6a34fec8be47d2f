/** Local and stored runs, newest first. */
import { ScrapeError } from '../core/errors.ts'
import { isComplete, type RunState } from '../core/run.ts'
import type { FrontierStats } from '../frontier/contract.ts'
import { fileWork, type PageCounts, pageCounts } from '../observe/progress-counts.ts'
import type { Store, StoredRun, WorkPart } from '../store/contract.ts'
import { storeUrlOf } from './fleet-places.ts'
import { withStore } from './open-run.ts'
import { listRuns, type RunFolder } from './run-folder.ts'
import { averageRate, livingWorkers, type RunFiles, runFiles, runStats, stuckWorkers } from './run-numbers.ts'
import { type OpenRun, queueNote, type RunPlaces } from './run-view.ts'

export interface ListedRun {
  id: string
  scraper: string
  /** Only workers of this region take it; undefined: all do. */
  region: string | undefined
  /** unreadable: it exists, but its record or its queue cannot be read; `why` says why. */
  state: RunState | 'paused' | 'unreadable'
  startedAt: string | undefined
  finishedAt: string | null
  isAlive: boolean
  /** Tasks of pages and files. */
  numbers: Pick<
    FrontierStats,
    'pending' | 'claimed' | 'completed' | 'remaining' | 'failed' | 'dead' | 'items' | 'lanes' | 'oldestAgeMs'
  >
  /** The page tasks among them. */
  pages: Pick<PageCounts, 'completed' | 'remaining' | 'failed'>
  files: RunFiles
  /** Pages settled per second since it began; undefined if no process is working on it. */
  rate: number | undefined
  /** Undefined for a local run in progress, which does not report it. */
  workers: number | undefined
  place: string
  /** Why it makes no progress, or how it ended. */
  why: string | undefined
}

interface ListRequest {
  places: RunPlaces
  /** Include finished runs. */
  isAll: boolean
  max: number
  /** The result of an earlier look, for a run that cannot have changed since; undefined: look again. */
  known?: (id: string) => ListedRun | undefined
}

const UNFINISHED: readonly RunState[] = ['running', 'stopped', 'failed']

export async function listAllRuns({
  places,
  isAll,
  max,
  known = () => undefined,
}: ListRequest): Promise<{ runs: ListedRun[]; more: number }> {
  const folders = listRuns(places.out).filter((folder) => isAll || isUnfinished(folder))
  await using parts = new AsyncDisposableStack()
  const store = storeUrlOf(withStore(places)) === undefined ? undefined : parts.use(await openStoreOf(places))
  const listed =
    (await store?.listRuns(isAll ? { limit: max + 1 } : { limit: 10 * (max + 1), states: UNFINISHED })) ?? []
  const stored = listed.filter(({ record }) => isAll || !isComplete(record)).slice(0, max + 1)
  const found = newestFirst([
    ...folders.map((folder) => foundFolder(folder, places)),
    ...stored.map((run) => foundStored(run, store!, places)),
  ])
  return { runs: await lookAtAll(found.slice(0, max), known), more: Math.max(0, found.length - max) }
}

/** One after the other, 60 runs over a network took a quarter of a minute. */
const LOOKS_AT_ONCE = 8
const LOOK_MS_MAX = 5_000

export interface FoundRun {
  id: string
  scraper: string
  place: string
  isStored: boolean
  /** As stored, which may be out of date. Throws if the run cannot be read. */
  keptState: () => RunState | undefined
  open: () => Promise<OpenRun>
}

export const foundFolder = (folder: RunFolder, places: RunPlaces): FoundRun => ({
  id: folder.runId,
  scraper: folder.scraper,
  place: folder.path,
  isStored: false,
  keptState: () => folder.readRecord()?.state,
  open: async () => (await import('./folder-run.ts')).openFolderRun(folder, places),
})

export const foundStored = (run: StoredRun, store: Store, places: RunPlaces): FoundRun => ({
  id: run.record.id,
  scraper: run.record.scraper,
  place: store.place,
  isStored: true,
  keptState: () => run.record.state,
  open: async () => (await import('./stored-run.ts')).openStoredRun(run, { store, places }),
})

/** Ids sort by time. */
export const newestFirst = (found: FoundRun[]): FoundRun[] => found.sort((a, b) => (a.id < b.id ? 1 : -1))

/** In their order. One bad run must not hide the others; a server that is down for one is down for all of them. */
export async function lookAtAll(
  found: readonly FoundRun[],
  known: (id: string) => ListedRun | undefined,
): Promise<ListedRun[]> {
  const runs: ListedRun[] = []
  let away: string | undefined
  let next = 0
  async function look(): Promise<void> {
    for (let i = next++; i < found.length; i = next++) {
      const one = found[i]!
      try {
        runs[i] =
          known(one.id) ?? (one.isStored && away !== undefined ? unreadable(one, away) : await inTime(lookAt(one)))
      } catch (error) {
        const { message } = error as Error
        if (one.isStored && error instanceof ScrapeError && error.class === 'service') away = message
        runs[i] = unreadable(one, message)
      }
    }
  }
  await Promise.all(Array.from({ length: LOOKS_AT_ONCE }, look))
  return runs
}

async function lookAt(one: FoundRun): Promise<ListedRun> {
  await using run = await one.open()
  return await describe(run)
}

/** Does not wait for late results, which close what they opened by themselves. */
async function inTime<T>(work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`no answer within ${LOOK_MS_MAX / 1000} s`)), LOOK_MS_MAX)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
    work.catch(() => {})
  }
}

async function openStoreOf(places: RunPlaces) {
  const { openStore } = await import('./fleet-places.ts')
  return await openStore(withStore(places))
}

function isUnfinished(folder: RunFolder): boolean {
  try {
    const record = folder.readRecord()
    return record === undefined || !isComplete(record)
  } catch {
    return true // an unreadable record is shown, with the reason
  }
}

async function describe(run: OpenRun): Promise<ListedRun> {
  const numbers = await runStats(run)
  const { id, scraper, state, startedAt, finishedAt } = run.record
  return {
    id,
    scraper,
    region: run.record.region,
    state: !run.isOver && numbers.isPaused ? 'paused' : state,
    startedAt,
    finishedAt: run.isAlive ? null : finishedAt,
    isAlive: run.isAlive,
    numbers,
    pages: pageCounts(numbers, run.record.files),
    files: runFiles(run.record, numbers),
    rate: run.isAlive ? averageRate(run, numbers) : undefined,
    workers: livingWorkers(run)?.length ?? (run.isAlive ? undefined : 0),
    place: run.place,
    why: await whyStill(run, numbers),
  }
}

export const NO_WORKERS = '0 workers'

/** Which workers a run waits for: any, those of its region, or those for the part that the others leave out. */
export function workersMissing(run: OpenRun, { remaining, lanes }: FrontierStats): string | undefined {
  const { region } = run.record
  const { pending, claimed } = fileWork(lanes)
  const isWithout = (part: WorkPart) =>
    run.workers?.some(({ only }) => only !== undefined && only !== part) === true &&
    !livingWorkers(run)?.some(({ only }) => only === undefined || only === part)
  if (pending > 0 && claimed === 0 && pending === remaining && isWithout('files')) return 'files wait: no file worker'
  if (!run.isAlive) return region === undefined ? NO_WORKERS : `no worker of region ${region}`
  return remaining > pending + claimed && isWithout('pages') ? 'pages wait: no page worker' : undefined
}

export const FILLING = 'being filled, or its filling was broken off'

/** The sources, which are not stored and must be given again. */
export const moreWords = ({ filling }: OpenRun) =>
  filling === 'urls' ? ' with the same --sitemap, --site, --url or --urls-file' : ''

/** Why a run makes no progress; undefined if it does. */
export async function whyStill(run: OpenRun, numbers: FrontierStats, nowMs = Date.now()): Promise<string | undefined> {
  const { record, frontier } = run
  const note = queueNote(run)
  if (note !== undefined) return note
  if (numbers.isPaused && !isComplete(record)) return `paused: ${numbers.pauseReason ?? 'no reason given'}`
  if (run.isOver) return record.reason ?? undefined
  if (run.filling !== undefined) return `${FILLING} (then: sluice ${run.resumeCommand().join(' ')}${moreWords(run)})`
  const stuck = stuckWorkers(run)
  const silentMs = Math.min(...stuck.map((worker) => worker.silentMs))
  const stuckText =
    stuck.length === 0
      ? undefined
      : `stuck: ${stuck.length} worker${stuck.length === 1 ? '' : 's'} silent for ${Math.round(silentMs / 1000)} s`
  const missing = workersMissing(run, numbers)
  if (missing !== undefined) return stuckText ?? missing
  if (numbers.claimed > 0 || numbers.pending === 0) return stuckText
  const dueMs = await frontier?.nextDueMs()
  if (dueMs !== undefined && dueMs > nowMs) return `all that is left waits until ${new Date(dueMs).toISOString()}`
  return stuckText
}

function unreadable({ id, scraper, place }: FoundRun, why: string): ListedRun {
  return {
    id,
    scraper,
    place,
    region: undefined,
    state: 'unreadable',
    startedAt: undefined,
    finishedAt: null,
    isAlive: false,
    numbers: { pending: 0, claimed: 0, completed: 0, remaining: 0, failed: 0, dead: 0, items: 0, lanes: {} },
    pages: { completed: 0, remaining: 0, failed: 0 },
    files: { pending: 0, claimed: 0, stored: 0, same: 0, failed: 0 },
    rate: undefined,
    workers: undefined,
    why,
  }
}
