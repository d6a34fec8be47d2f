/** Fires schedules when they are due. Any number of servers may run a scheduler: a fire is claimed before its run is started. */
import { every } from '../../core/every.ts'
import type { Fire, Schedule } from './contract.ts'
import { missedReason } from './missed.ts'
import type { Schedules } from './schedules.ts'

interface SchedulerParts {
  schedules: Schedules
  start(schedule: Schedule): Promise<string>
  isRunning(runId: string): Promise<boolean>
  cancel(runId: string, reason: string): Promise<void>
  /** Called for every fire that was missed or failed to start its run. */
  onTrouble(schedule: Schedule, outcome: 'missed' | 'failed', reason: string): void
  say(level: 'info' | 'warn', message: string): void
  /** Fires nothing by itself, only on request. Default false. */
  isPassive?: boolean
  now?: () => number
}

const LOOK_MS = 1_000
/** A fire later than this counts as missed: no server was running. */
const LATE_MS = 60_000
/** A fire without a run after this long died with its server. */
const STARTING_MS_MAX = 120_000

export class Scheduler implements AsyncDisposable {
  readonly #parts: Required<SchedulerParts>
  readonly #looking: NodeJS.Timeout | undefined
  #look: Promise<void> | undefined

  constructor(parts: SchedulerParts) {
    this.#parts = { now: Date.now, isPassive: false, ...parts }
    if (!this.#parts.isPassive) this.#looking = every(() => this.look(), LOOK_MS)
  }

  /** Called once a second; calls do not overlap. */
  look(): Promise<void> {
    this.#look ??= this.#lookOnce()
      .catch((error: Error) => this.#parts.say('warn', `schedules cannot be read: ${error.message}`))
      .finally(() => {
        this.#look = undefined
      })
    return this.#look
  }

  /** Starts a run now, regardless of times and overlap. */
  async runNow(schedule: Schedule): Promise<string | undefined> {
    const { schedules, now } = this.#parts
    return await this.#start(schedule, await schedules.fireNow(schedule, now()))
  }

  async #lookOnce(): Promise<void> {
    const { schedules, now } = this.#parts
    for (const schedule of await schedules.due(now())) await this.#fire(schedule)
    for (const fire of await schedules.open()) await this.#goOn(fire)
  }

  async #fire(schedule: Schedule): Promise<void> {
    const { schedules, now, onTrouble } = this.#parts
    const lateMs = now() - schedule.nextAtMs
    if (lateMs > LATE_MS && !schedule.isCatchUp) {
      const reason = missedReason(schedule, now())
      if ((await schedules.claim(schedule, 'missed', now(), reason)) !== undefined)
        onTrouble(schedule, 'missed', reason)
      return
    }
    const before = await this.#runBefore(schedule)
    if (before !== undefined && schedule.overlap === 'skip')
      return void (await schedules.claim(schedule, 'skipped', now(), `run ${before} still goes on`))
    if (before !== undefined && schedule.overlap === 'queue')
      return void (await schedules.claim(schedule, 'queued', now(), `waits for run ${before}`))
    const fire = await schedules.claim(schedule, 'starting', now())
    if (fire === undefined) return
    if (before !== undefined) await this.#parts.cancel(before, `schedule ${schedule.name} begins anew`).catch(() => {})
    await this.#start(schedule, fire)
  }

  /** The run of an earlier fire, if it is still running. */
  async #runBefore({ id }: Schedule): Promise<string | undefined> {
    const last = (await this.#parts.schedules.fires(id)).find(({ runId }) => runId !== undefined)
    return last?.runId !== undefined && (await this.#parts.isRunning(last.runId)) ? last.runId : undefined
  }

  async #start(schedule: Schedule, fire: Fire): Promise<string | undefined> {
    const { schedules, start, onTrouble, say } = this.#parts
    try {
      const runId = await start(schedule)
      await schedules.settle(fire, 'started', { runId })
      say('info', `schedule ${schedule.name}: run ${runId} of ${schedule.scraper}`)
      return runId
    } catch (error) {
      const reason = (error as Error).message
      await schedules.settle(fire, 'failed', { reason })
      onTrouble(schedule, 'failed', reason)
      return undefined
    }
  }

  /** Continues a fire that waits for the previous run, or whose server died before its run was known. */
  async #goOn(fire: Fire): Promise<void> {
    const { schedules, now, onTrouble } = this.#parts
    if (fire.outcome === 'starting' && now() - fire.atMs < STARTING_MS_MAX) return
    const schedule = await schedules.get(fire.scheduleId).catch(() => undefined)
    if (schedule === undefined) return await schedules.settle(fire, 'failed', { reason: 'the schedule is gone' })
    if (fire.outcome === 'starting') {
      const reason = 'the server died while it started the run'
      await schedules.settle(fire, 'missed', { reason })
      return onTrouble(schedule, 'missed', reason)
    }
    if ((await this.#runBefore(schedule)) !== undefined) return
    if (await schedules.take(fire)) await this.#start(schedule, fire)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#looking)
    await this.#look
  }
}
