/** The dead letters of one run. */

import type { DeadLetter } from '../../../frontier/contract.ts'
import { frontierOf } from '../../../runs/run-view.ts'
import type { deadLetterEndpoints } from '../../../server/api/routes/dead-letters.ts'
import type { HandlersOf } from '../../../server/api/server.ts'
import type { Server } from '../server/server.ts'
import { filterOf } from './dead-filter.ts'

export function deadLetterHandlers(server: Server): HandlersOf<typeof deadLetterEndpoints> {
  const { openRuns } = server
  return {
    async listDead({ query: { run: id, limit, cursor, ...filter } }) {
      const { dead } = frontierOf(await openRuns.run(id))
      const letters = await dead.list({ ...filterOf(filter), limit: limit + 1, after: cursor })
      const data = letters.slice(0, limit).map((letter) => toDeadLetter(id, letter))
      return { data, next: letters.length > limit ? data.at(-1)!.id : null }
    },
    async listDeadGroups({ query: { run: id } }) {
      const groups = await frontierOf(await openRuns.run(id)).dead.groups()
      return {
        groups: groups.map(({ firstAtMs, lastAtMs, ...group }) => ({
          runId: id,
          ...group,
          firstAt: new Date(firstAtMs).toISOString(),
          lastAt: new Date(lastAtMs).toISOString(),
        })),
      }
    },
    redrive: ({ body: { run: id, ids, ...filter } }) =>
      openRuns.change(id, async (run) => ({
        retried: await server.retry(run, { ...filterOf(filter), ids }),
      })),
    dropDead: ({ query: { run: id, ...filter } }) =>
      openRuns.change(id, async (run) => ({ dropped: await frontierOf(run).dead.drop(filterOf(filter)) })),
  }
}

function toDeadLetter(runId: string, { task, error, attempts, diedAtMs, snapshot }: DeadLetter) {
  return {
    id: task.id,
    runId,
    url: task.url,
    route: task.route,
    code: error.code,
    class: error.class,
    message: error.message,
    attempts,
    diedAt: new Date(diedAtMs).toISOString(),
    hasSnapshot: snapshot !== undefined,
  }
}
