/** What the machines of a fleet share: where it is, and how it is opened. */
import { ScrapeError } from '../core/errors.ts'
import type { Frontier } from '../frontier/contract.ts'
import { openFrontier } from '../frontier/open.ts'
import type { Store } from '../orchestrator/contract.ts'
import type { ConfigValues } from './config.ts'

type Places = Pick<ConfigValues, 'frontier' | 'store'>

const isPostgres = (url: string | undefined) => /^postgres(?:ql)?:\/\//i.test(url ?? '')

/** Where the fleet's runs are kept; undefined when nobody named a place. */
export function storeUrlOf({ frontier, store }: Places): string | undefined {
  return store ?? (isPostgres(frontier) ? frontier : undefined)
}

export async function openStore(places: Places): Promise<Store> {
  const url = storeUrlOf(places)
  if (url === undefined)
    throw new ScrapeError('E_OPTION', 'a fleet needs a place that all its machines can reach', {
      notes: [`the frontier is ${places.frontier}`],
      fix: 'Name it with --frontier postgres://USER@HOST/DATABASE, or SLUICE_FRONTIER.',
    })
  const path = /^sqlite:(?:\/\/)?(.+)$/.exec(url)?.[1]
  if (path !== undefined) return (await import('../orchestrator/store/sqlite.ts')).openSqliteStore(path)
  if (!isPostgres(url))
    throw new ScrapeError('E_OPTION', `there is no store of the kind ${url.split(':')[0]}:`, {
      fix: 'Use postgres://USER@HOST/DATABASE, or sqlite:FILE for one machine.',
    })
  const [{ openPostgresStore }, { dropRun }] = await Promise.all([
    import('../orchestrator/store/postgres.ts'),
    import('../frontier/postgres/runs.ts'),
  ])
  return await openPostgresStore(url, async (db, runId) => void (await dropRun(db.pool, runId)))
}

/** The queue of one run of the fleet. Its items stay in it: nobody drains them into files. */
export async function openFleetFrontier(
  { frontier }: Places,
  runId: string,
  onOutage?: (message: string) => void,
): Promise<Frontier> {
  return await openFrontier(frontier, {
    runId,
    keepsItems: true,
    onOutage: ({ attempt, error, waitMs }) =>
      onOutage?.(`the queue is away (${error.message}): try ${attempt}, again in ${Math.round(waitMs)} ms`),
  })
}
