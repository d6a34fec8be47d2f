/** Schedules, including starting one immediately. */

import { loadScraper } from '../../../config/load-scraper.ts'
import { Problem } from '../../../server/api/problem.ts'
import type { scheduleEndpoints } from '../../../server/api/routes/schedules.ts'
import type { HandlersOf } from '../../../server/api/server.ts'
import type { NewSchedule, Schedule } from '../../../server/schedule/contract.ts'
import { nextTimes } from '../../../server/schedule/cron.ts'
import type { Server } from '../server/server.ts'

const FIRES_SHOWN = 10

export function scheduleHandlers({ schedules, scheduler }: Server): HandlersOf<typeof scheduleEndpoints> {
  const detailOf = async (schedule: Schedule) => {
    const { createdAtMs, nextAtMs, ...rest } = schedule
    const fires = await schedules.fires(schedule.id, FIRES_SHOWN)
    return {
      ...rest,
      createdAt: timeOf(createdAtMs),
      nextAt: schedule.isPaused ? null : timeOf(nextAtMs),
      lastFires: fires.map(({ dueAtMs, outcome, runId, reason }) => ({
        dueAt: timeOf(dueAtMs),
        outcome,
        runId: runId ?? null,
        reason: reason ?? null,
      })),
    }
  }
  const setPaused = async (word: string, isPaused: boolean) => {
    await schedules.setPaused(word, isPaused)
    return await detailOf(await schedules.get(word))
  }
  return {
    listSchedules: async () => ({ data: await Promise.all((await schedules.list()).map(detailOf)) }),
    async createSchedule({ body }) {
      await loadScraper(body.scraper) // report a missing scraper now, not at six in the morning
      return await detailOf(await schedules.create(body as NewSchedule))
    },
    getSchedule: async ({ params: { id } }) => await detailOf(await schedules.get(id)),
    async updateSchedule({ params: { id }, body }) {
      await loadScraper(body.scraper)
      return await detailOf(await schedules.update((await schedules.get(id)).id, body as NewSchedule))
    },
    async deleteSchedule({ params: { id } }) {
      await schedules.remove(id)
      return undefined
    },
    pauseSchedule: ({ params: { id } }) => setPaused(id, true),
    resumeSchedule: ({ params: { id } }) => setPaused(id, false),
    async triggerSchedule({ params: { id } }) {
      const schedule = await schedules.get(id)
      const runId = await scheduler.runNow(schedule)
      if (runId !== undefined) return { id: runId, url: `/v1/runs/${runId}` }
      const [fire] = await schedules.fires(schedule.id, 1)
      throw new Problem(422, 'E_NOT_STARTED', fire?.reason ?? 'its run could not be started')
    },
    async nextTimes({ params: { id }, query: { n } }) {
      const { cron, tz } = await schedules.get(id)
      return { tz, times: nextTimes(cron, tz, Date.now(), n).map(timeOf) }
    },
  }
}

const timeOf = (ms: number) => new Date(ms).toISOString()
