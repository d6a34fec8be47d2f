/** The scheduler on both databases, with a manual clock. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { postgresForTests } from '../../../test/services/postgres.ts'
import { temporaryFolder } from '../../../test/sluice.ts'
import type { SqlDatabase } from '../../drivers/sql.ts'
import { openPostgresDatabase } from '../../store/postgres.ts'
import { openSqliteDatabase } from '../../store/sqlite.ts'
import type { NewSchedule } from './contract.ts'
import { checkCron, nextTimes } from './cron.ts'
import { Scheduler } from './scheduler.ts'
import { Schedules } from './schedules.ts'

const HOUR = 3_600_000

const hourly = (more: Partial<NewSchedule> = {}): NewSchedule => ({
  name: 'books',
  scraper: 'books',
  args: { pages: 2 },
  limits: {},
  cron: 'hourly',
  tz: 'UTC',
  overlap: 'skip',
  jitterMs: 0,
  isCatchUp: false,
  ...more,
})

/** A server's scheduler that records runs in a list and looks only when asked. */
class Bench {
  readonly started: string[] = []
  readonly troubles: string[] = []
  readonly running = new Set<string>()
  readonly schedules: Schedules
  readonly scheduler: Scheduler
  nowMs: number

  constructor(db: SqlDatabase, nowMs: number, start?: () => Promise<string>) {
    this.nowMs = nowMs
    this.schedules = new Schedules(db, () => this.nowMs)
    this.scheduler = new Scheduler({
      schedules: this.schedules,
      start:
        start ??
        (async () => {
          const id = `run-${this.started.length + 1}`
          this.started.push(id)
          this.running.add(id)
          return id
        }),
      isRunning: async (id) => this.running.has(id),
      cancel: async (id) => void this.running.delete(id),
      onTrouble: ({ name }, outcome) => this.troubles.push(`${name} ${outcome}`),
      say: () => {},
      now: () => this.nowMs,
    })
  }

  async lookAt(ms: number): Promise<void> {
    this.nowMs = ms
    await this.scheduler.look()
  }

  async outcomes(): Promise<string[]> {
    const [schedule] = await this.schedules.list()
    return (await this.schedules.fires(schedule!.id)).map(({ outcome }) => outcome).reverse()
  }

  [Symbol.asyncDispose]() {
    return this.scheduler[Symbol.asyncDispose]()
  }
}

const ENGINES: Record<string, () => Promise<AsyncDisposable & { open(): Promise<SqlDatabase> }>> = {
  'sqlite:': async () => {
    const folder = temporaryFolder()
    return {
      open: async () => openSqliteDatabase(join(folder.path, 'store.db')),
      [Symbol.asyncDispose]: async () => folder[Symbol.dispose](),
    }
  },
  'postgres:': async () => {
    const database = await postgresForTests()
    return {
      open: () => openPostgresDatabase(database.url),
      [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
    }
  },
}

for (const [engine, start] of Object.entries(ENGINES)) {
  const check = (title: string, body: (db: SqlDatabase, open: () => Promise<SqlDatabase>) => Promise<void>) =>
    it(title, async () => {
      await using place = await start()
      const opened: SqlDatabase[] = []
      const open = async () => {
        const db = await place.open()
        opened.push(db)
        return db
      }
      try {
        await body(await open(), open)
      } finally {
        for (const db of opened) await db.close()
      }
    })

  describe(`schedules on ${engine}`, () => {
    check('a fire starts a run, once, and the next fire is an hour later', async (db) => {
      await using bench = new Bench(db, Date.now())
      const { nextAtMs } = await bench.schedules.create(hourly())
      await bench.lookAt(nextAtMs - 1)
      assert.deepEqual(bench.started, [])
      await bench.lookAt(nextAtMs)
      await bench.lookAt(nextAtMs + 1000)
      assert.deepEqual(bench.started, ['run-1'])
      assert.equal((await bench.schedules.get('books')).nextAtMs, nextAtMs + HOUR)
    })

    check('two servers start a run once', async (db, open) => {
      await using one = new Bench(db, Date.now())
      // Two connections of one process to one SQLite file would wait for each other.
      await using other = new Bench(engine === 'sqlite:' ? db : await open(), Date.now())
      const { nextAtMs } = await one.schedules.create(hourly())
      for (let fire = 0; fire < 5; fire++) {
        const atMs = nextAtMs + fire * HOUR
        one.running.clear()
        other.running.clear()
        await Promise.all([one.lookAt(atMs), other.lookAt(atMs)])
      }
      assert.equal(one.started.length + other.started.length, 5)
    })

    check('while the previous run is going: skip the fire, queue it, or cancel that run', async (db) => {
      await using bench = new Bench(db, Date.now())
      const schedule = await bench.schedules.create(hourly())
      const { nextAtMs } = schedule
      await bench.lookAt(nextAtMs)
      await bench.lookAt(nextAtMs + HOUR)
      assert.deepEqual(bench.started, ['run-1'])
      await bench.schedules.update(schedule.id, hourly({ overlap: 'queue' }))
      const { nextAtMs: thirdMs } = await bench.schedules.get('books')
      await bench.lookAt(thirdMs)
      assert.deepEqual(bench.started, ['run-1'])
      bench.running.delete('run-1')
      await bench.lookAt(thirdMs + 5000)
      assert.deepEqual(bench.started, ['run-1', 'run-2'])
      await bench.schedules.update(schedule.id, hourly({ overlap: 'cancel-old' }))
      const { nextAtMs: fourthMs } = await bench.schedules.get('books')
      await bench.lookAt(fourthMs)
      assert.deepEqual(bench.started, ['run-1', 'run-2', 'run-3'])
      assert.deepEqual([...bench.running], ['run-3'])
    })

    check('a fire missed while no server ran is recorded, and caught up with one run on request', async (db) => {
      await using bench = new Bench(db, Date.now())
      const schedule = await bench.schedules.create(hourly())
      await bench.lookAt(schedule.nextAtMs + 5 * HOUR)
      assert.deepEqual([bench.started, bench.troubles, await bench.outcomes()], [[], ['books missed'], ['missed']])
      assert.match((await bench.schedules.fires(schedule.id))[0]!.reason!, /^6 fires missed, /)
      await bench.schedules.update(schedule.id, hourly({ isCatchUp: true }))
      const { nextAtMs } = await bench.schedules.get('books')
      await bench.lookAt(nextAtMs + 5 * HOUR)
      await bench.lookAt(nextAtMs + 5 * HOUR + 1000)
      assert.deepEqual(bench.started, ['run-1'])
    })

    check('a run that cannot be started is reported, and the schedule continues', async (db) => {
      let isBroken = true
      await using bench = new Bench(db, Date.now(), async () => {
        if (isBroken) throw new Error('no such scraper')
        return 'run-1'
      })
      const { nextAtMs } = await bench.schedules.create(hourly())
      await bench.lookAt(nextAtMs)
      isBroken = false
      await bench.lookAt(nextAtMs + HOUR)
      assert.deepEqual(await bench.outcomes(), ['failed', 'started'])
      assert.deepEqual(bench.troubles, ['books failed'])
    })

    check('a paused schedule does not fire, and fires due during the pause are not made up for', async (db) => {
      await using bench = new Bench(db, Date.now())
      const { id, nextAtMs } = await bench.schedules.create(hourly({ isCatchUp: true }))
      await bench.schedules.setPaused(id, true)
      await bench.lookAt(nextAtMs + 3 * HOUR)
      await bench.schedules.setPaused(id, false)
      await bench.lookAt(nextAtMs - 1)
      assert.deepEqual(bench.started, [])
    })

    check('with jitter it fires a little later, by a different amount each time', async (db) => {
      const startMs = Date.UTC(2026, 10, 15, 12)
      const schedules = new Schedules(db, () => startMs)
      const delays: number[] = []
      for (let n = 0; n < 20; n++) {
        const { nextAtMs } = await schedules.create(hourly({ name: `jitter ${n}`, jitterMs: 600_000 }))
        delays.push(nextAtMs - (startMs + HOUR))
      }
      assert.ok(
        delays.every((ms) => ms >= 0 && ms < 600_000),
        String(delays),
      )
      assert.ok(new Set(delays).size > 10, 'not all at once')
    })

    check('names are unique, and a schedule that never fires is refused', async (db) => {
      const schedules = new Schedules(db)
      await schedules.create(hourly())
      await assert.rejects(schedules.create(hourly()), /there is a schedule named "books"/)
      await assert.rejects(schedules.create(hourly({ name: 'b', cron: '0 0 30 2 *' })), /never comes/)
      await assert.rejects(schedules.create(hourly({ name: 'b', cron: '61 * * * *' })), /minute/)
      await assert.rejects(schedules.create(hourly({ name: 'b', tz: 'Mars/Olympus' })), /Mars\/Olympus/)
      await assert.rejects(schedules.get('nobody'), /no schedule "nobody"/)
    })
  })
}

describe('cron', () => {
  const times = (cron: string, tz: string, after: string, count: number) =>
    nextTimes(checkCron(cron, tz), tz, Date.parse(after), count).map((ms) => new Date(ms).toISOString())

  it('fires once a day across both daylight saving changes', () => {
    assert.deepEqual(times('30 2 * * *', 'Europe/Berlin', '2027-03-27T00:00:00Z', 3), [
      '2027-03-27T01:30:00.000Z',
      '2027-03-28T01:00:00.000Z', // there is no 02:30 that day
      '2027-03-29T00:30:00.000Z',
    ])
    assert.deepEqual(times('30 2 * * *', 'Europe/Berlin', '2027-10-30T00:00:00Z', 3), [
      '2027-10-30T00:30:00.000Z',
      '2027-10-31T00:30:00.000Z', // there are two, and the first counts
      '2027-11-01T01:30:00.000Z',
    ])
  })

  it('knows presets for the usual times', () => {
    assert.deepEqual(times('daily', 'Europe/Rome', '2026-11-15T12:00:00Z', 1), ['2026-11-16T05:00:00.000Z'])
    assert.deepEqual(times('hourly', 'UTC', '2026-11-15T12:10:00Z', 1), ['2026-11-15T13:00:00.000Z'])
  })
})
