/** Lists local and stored runs page by page, newest first; only the runs of the page are opened. */
import type { RunState } from '../core/run.ts'
import type { Store } from '../store/contract.ts'
import { listRuns } from './run-folder.ts'
import { type FoundRun, foundFolder, foundStored, type ListedRun, lookAtAll, newestFirst } from './run-list.ts'
import type { RunPlaces } from './run-view.ts'

export interface PageRequest {
  places: RunPlaces
  store: Store
  limit: number
  /** Only runs older than this one. */
  before?: string | undefined
  scraper?: string | undefined
  state?: ListedRun['state'] | undefined
  /** The result of an earlier look, for a run that cannot have changed since; undefined: look again. */
  known: (id: string) => ListedRun | undefined
}

/** How many runs are looked at together when most of them do not match. */
const CHUNK = 100

export async function pageOfRuns(request: PageRequest): Promise<{ runs: ListedRun[]; isMore: boolean }> {
  const { limit, state, known } = request
  const runs: ListedRun[] = []
  for await (const chunk of chunksOf(request)) {
    if (state === undefined) {
      runs.push(...(await lookAtAll(chunk.slice(0, limit - runs.length), known)))
      if (runs.length === limit) return { runs, isMore: chunk.length > limit }
      continue
    }
    const looked = await lookAtAll(
      chunk.filter((one) => mayBe(one, state)),
      known,
    )
    runs.push(...looked.filter((run) => run.state === state))
    if (runs.length > limit) return { runs: runs.slice(0, limit), isMore: true }
  }
  return { runs, isMore: false }
}

/** Each chunk is longer than a page, so that it is known whether there are more. */
async function* chunksOf({ places, store, limit, before, scraper, state }: PageRequest): AsyncGenerator<FoundRun[]> {
  const size = Math.max(limit + 1, CHUNK)
  const isOlder = ({ runId }: { runId: string }) => before === undefined || runId < before
  const folders = listRuns(places.out, scraper).filter(isOlder)
  const states = statesOf(state)
  for (let last = before, at = 0; ; ) {
    const stored = await store.listRuns({
      scraper,
      states,
      page: { before: last },
      limit: size,
    })
    const chunk = newestFirst([
      ...folders.slice(at, at + size).map((folder) => foundFolder(folder, places)),
      ...stored.map((run) => foundStored(run, store, places)),
    ]).slice(0, size)
    if (chunk.length > 0) yield chunk
    if (chunk.length < size) return
    at += chunk.filter(({ isStored }) => !isStored).length
    last = chunk.at(-1)!.id
  }
}

/** The stored states of a run that is shown in this state. */
function statesOf(state: ListedRun['state'] | undefined): RunState[] | undefined {
  if (state === undefined || state === 'unreadable') return undefined
  return [state === 'paused' ? 'running' : state]
}

/** Decided without opening the run: one stored as running may be paused, or its process is gone. */
function mayBe(found: FoundRun, state: ListedRun['state']): boolean {
  if (state === 'unreadable') return true
  try {
    const kept = found.keptState()
    return kept === state || kept === 'running'
  } catch {
    return false
  }
}
