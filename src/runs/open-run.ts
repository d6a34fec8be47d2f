/** Finds a run by name and opens it, in its folder or in the store of a fleet. */
import { resolve } from 'node:path'
import { parseEngineUrl } from '../core/engine-url.ts'
import { ScrapeError } from '../core/errors.ts'
import { storeUrlOf } from './fleet-places.ts'
import { findRun, listRuns, type RunFolder } from './run-folder.ts'
import { withoutPassword } from './run-identity.ts'
import type { OpenRun, RunPlaces } from './run-view.ts'

/**
 * A name that matches a run folder (its id, its path) means that run; the name of a scraper means its newest run, in folders or
 * in the store; no name means the newest run of all.
 */
export async function openRun(word: string | undefined, places: RunPlaces): Promise<OpenRun> {
  const isNewest = word === undefined || word === 'latest'
  const folder = findFolder(places.out, word)
  const storeUrl = storeUrlOf(withStore(places))
  const isMany = isNewest || folder === undefined || folder.scraper === word // a scraper has runs in both places
  const isStoreMeant = storeUrl !== undefined && isMany
  const stored = isStoreMeant ? await openStored(isNewest ? undefined : word, places) : undefined
  if (folder === undefined) {
    if (stored === undefined) throw notFound(word, places, storeUrl)
    return stored
  }
  if (stored !== undefined && stored.record.id > folder.runId) return stored // ids sort by time
  await stored?.[Symbol.asyncDispose]()
  const { openFolderRun } = await import('./folder-run.ts')
  return await openFolderRun(folder, places)
}

async function openStored(word: string | undefined, places: RunPlaces): Promise<OpenRun | undefined> {
  const { findStoredRun } = await import('./stored-run.ts')
  return await findStoredRun(word, places)
}

export const withStore = (places: RunPlaces) => ({ frontier: places.frontier, store: places.store })

function findFolder(out: string, word: string | undefined): RunFolder | undefined {
  try {
    return findRun(out, word)
  } catch (error) {
    if (error instanceof ScrapeError && error.code === 'E_RUN_NOT_FOUND') return undefined
    throw error
  }
}

function notFound(word: string | undefined, { out }: RunPlaces, storeUrl: string | undefined): ScrapeError {
  const nor = storeUrl === undefined ? '' : `, nor in ${withoutPassword(storeUrl)}`
  const known = listRuns(out)
    .slice(0, 5)
    .map((folder) => `${folder.scraper}/${folder.runId}`)
  return new ScrapeError(
    'E_RUN_NOT_FOUND',
    `${word === undefined ? 'no run' : `no run "${word}"`} under ${out}${nor}`,
    {
      notes: known.length > 0 ? [`latest: ${known.join(' · ')}`] : [],
      fix:
        storeUrl === undefined
          ? 'Look under runs/, or give --out; for a run of a fleet, --frontier or SLUICE_FRONTIER.'
          : `See \`sluice ps --all\`, or give another --out or --store${storeFileNote(storeUrl) === undefined ? '' : ': a file is seen from its own machine and folder only'}.`,
    },
  )
}

/** A note about a store that other machines cannot reach; undefined otherwise. */
export function storeFileNote(storeUrl: string | undefined): string | undefined {
  const { path } = parseEngineUrl(storeUrl ?? '')
  if (path === undefined) return undefined
  return `runs and items are kept in ${resolve(path)} on this machine: workers on other machines need --store postgres://…`
}
