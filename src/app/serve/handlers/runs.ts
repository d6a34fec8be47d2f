/** Runs, read from the same places as the commands read them. */

import { isComplete } from '../../../core/run.ts'
import type { ListedRun } from '../../../runs/run-list.ts'
import { livingWorkers, runStats } from '../../../runs/run-numbers.ts'
import { cancelRun, pauseRun, resumeRun } from '../../../runs/steer-run.ts'
import type { runEndpoints } from '../../../server/api/routes/runs.ts'
import type { HandlersOf } from '../../../server/api/server.ts'
import { idleReason, servedWords } from '../server/idle-reason.ts'
import type { Server } from '../server/server.ts'
import { filterOf } from './dead-filter.ts'
import { itemsAnswer } from './items-answer.ts'

/** nginx buffers responses by default; events must be sent immediately. */
const UNBUFFERED = { 'x-accel-buffering': 'no' }

export function runHandlers(server: Server): HandlersOf<typeof runEndpoints> {
  const { openRuns } = server
  return {
    async listRuns({ query: { limit, cursor, scraper, state } }) {
      const { runs, isMore } = await server.lists.page({ limit, before: cursor, scraper, state })
      return { data: runs.map(toSummary), next: isMore ? runs.at(-1)!.id : null }
    },
    async startRun({ body: { scraper, args, limits, region } }) {
      const id = await server.startRun(scraper, args, limits, region)
      return { id, url: `/v1/runs/${id}` }
    },
    async getRun({ params: { id } }) {
      const run = await openRuns.run(id)
      const numbers = await runStats(run)
      const { pending, claimed, completed, failed, dead, remaining } = numbers
      return {
        ...run.record,
        args: run.record.args ?? null,
        isAlive: run.isAlive,
        isPaused: numbers.isPaused,
        why: await idleReason(run, numbers),
        queue: { pending, claimed, completed, failed, dead, remaining },
        workers: livingWorkers(run)?.length ?? null,
      }
    },
    pauseRun: ({ params: { id } }, { name }) =>
      openRuns.change(id, (run) => pauseRun(run, `paused through the API (${name})`)),
    resumeRun: ({ params: { id } }) =>
      openRuns.change(id, async (run) => {
        const steered = await resumeRun(run)
        const isStarted = run.isOver && !isComplete(run.record) && (await server.goOn(run))
        return { ...steered, isChanged: steered.isChanged || isStarted }
      }),
    cancelRun: ({ params: { id } }, { name }) =>
      openRuns.change(id, (run) => cancelRun(run, `cancelled through the API (${name})`)),
    retryFailed: ({ params: { id }, body }) =>
      openRuns.change(id, async (run) => ({ retried: await server.retry(run, filterOf(body)) })),
    getItems: async ({ params: { id }, query }) => await itemsAnswer(await openRuns.run(id), query),
    async watchRun({ params: { id } }, { lastEventId, signal }) {
      const body = await server.feeds.watch(id, lastEventId, signal)
      return body === undefined ? undefined : { contentType: 'text/event-stream', body, headers: UNBUFFERED }
    },
    async getErrors({ params: { id }, query: { group } }) {
      const { record } = await openRuns.run(id)
      const groups = new Map<string, { name: string; count: number; example: string }>()
      for (const { code, class: kind, count, example } of record.errors) {
        const name = { class: kind, code, cause: `${code} ${example}` }[group]
        groups.set(name, { name, count: count + (groups.get(name)?.count ?? 0), example })
      }
      return { groups: [...groups.values()].sort((a, b) => b.count - a.count) }
    },
  }
}

function toSummary({ numbers, rate, workers, why, startedAt, ...run }: ListedRun) {
  const { id, scraper, region, state, isAlive, finishedAt } = run
  const { completed, remaining, failed, dead, items } = numbers
  return {
    id,
    scraper,
    region: region ?? null,
    state,
    isAlive,
    startedAt: startedAt ?? null,
    finishedAt,
    completed,
    remaining,
    failed,
    dead,
    items,
    rate: rate ?? null,
    workers: workers ?? null,
    why: servedWords(why),
  }
}
