/** Runs of both kinds, the newest first: those of this machine's folders and those in the store. */
import type { RunState } from '../../core/run.ts'
import type { FrontierStats } from '../../frontier/contract.ts'
import { storeUrlOf } from '../fleet/fleet.ts'
import { listRuns, type RunFolder } from '../run/run-folder.ts'
import {
  averageRate,
  livingWorkers,
  type OpenRun,
  type RunPlaces,
  runStats,
  stuckWorkers,
  withStore,
} from './open-run.ts'

export interface ListedRun {
  id: string
  scraper: string
  /** unreadable: it is there, but its record or its queue is not to be read; `why` says why. */
  state: RunState | 'paused' | 'unreadable'
  startedAt: string | undefined
  finishedAt: string | null
  isAlive: boolean
  numbers: Pick<FrontierStats, 'completed' | 'remaining' | 'failed' | 'dead' | 'items'>
  /** Pages settled a second since it began; undefined when nobody works on it. */
  rate: number | undefined
  /** Undefined for a run of one machine that is worked on: it does not tell. */
  workers: number | undefined
  place: string
  /** Why it does not move, or how it ended. */
  why: string | undefined
}

export interface ListRequest {
  places: RunPlaces
  /** The finished ones too. */
  isAll: boolean
  max: number
}

const UNFINISHED: readonly RunState[] = ['running', 'stopped', 'failed']

export async function listAllRuns({ places, isAll, max }: ListRequest): Promise<{ runs: ListedRun[]; more: number }> {
  const folders = listRuns(places.out).filter((folder) => isAll || isUnfinished(folder))
  await using parts = new AsyncDisposableStack()
  const store = storeUrlOf(withStore(places)) === undefined ? undefined : parts.use(await openStoreOf(places))
  const stored = (await store?.listRuns({ limit: max + 1, ...(isAll ? {} : { states: UNFINISHED }) })) ?? []
  const found = [
    ...folders.map((folder) => ({
      id: folder.runId,
      scraper: folder.scraper,
      place: folder.path,
      open: async () => (await import('./folder-run.ts')).openFolderRun(folder, places),
    })),
    ...stored.map((run) => ({
      id: run.record.id,
      scraper: run.record.scraper,
      place: store!.place,
      open: async () => (await import('./stored-run.ts')).openStoredRun(run, { store: store!, places }),
    })),
  ].sort((a, b) => (a.id < b.id ? 1 : -1))
  const runs: ListedRun[] = []
  for (const one of found.slice(0, max)) {
    try {
      await using run = await one.open()
      runs.push(await describe(run))
    } catch (error) {
      runs.push(unreadable(one, (error as Error).message)) // one bad run must not hide the others
    }
  }
  return { runs, more: Math.max(0, found.length - max) }
}

async function openStoreOf(places: RunPlaces) {
  const { openStore } = await import('../fleet/fleet.ts')
  return await openStore(withStore(places))
}

function isUnfinished(folder: RunFolder): boolean {
  try {
    return folder.readRecord()?.state !== 'finished'
  } catch {
    return true // a record that cannot be read is shown, with the reason
  }
}

async function describe(run: OpenRun): Promise<ListedRun> {
  const numbers = await runStats(run)
  const { id, scraper, state, startedAt, finishedAt } = run.record
  return {
    id,
    scraper,
    state: !run.isOver && numbers.isPaused ? 'paused' : state,
    startedAt,
    finishedAt: run.isAlive ? null : finishedAt,
    isAlive: run.isAlive,
    numbers,
    rate: run.isAlive ? averageRate(run, numbers) : undefined,
    workers: livingWorkers(run)?.length ?? (run.isAlive ? undefined : 0),
    place: run.place,
    why: await whyStill(run, numbers),
  }
}

/** Why a run does not move; undefined when it does. */
export async function whyStill(run: OpenRun, numbers: FrontierStats, nowMs = Date.now()): Promise<string | undefined> {
  const { record, frontier } = run
  if (numbers.isPaused && record.state !== 'finished') return `paused: ${numbers.pauseReason ?? 'no reason given'}`
  if (run.isOver) return record.reason ?? undefined
  const stuck = stuckWorkers(run)
  const silentMs = Math.min(...stuck.map((worker) => worker.silentMs))
  const stuckText =
    stuck.length === 0
      ? undefined
      : `stuck: ${stuck.length} worker${stuck.length === 1 ? '' : 's'} silent for ${Math.round(silentMs / 1000)} s`
  if (!run.isAlive) return stuckText ?? '0 workers'
  if (numbers.claimed > 0 || numbers.pending === 0) return stuckText
  const dueMs = await frontier?.nextDueMs()
  if (dueMs !== undefined && dueMs > nowMs) return `all that is left waits until ${new Date(dueMs).toISOString()}`
  return stuckText
}

function unreadable(run: { id: string; scraper: string; place: string }, why: string): ListedRun {
  return {
    ...run,
    state: 'unreadable',
    startedAt: undefined,
    finishedAt: null,
    isAlive: false,
    numbers: { completed: 0, remaining: 0, failed: 0, dead: 0, items: 0 },
    rate: undefined,
    workers: undefined,
    why,
  }
}
