/** `sluice schedule`: runs that a server (`sluice serve`) starts on a schedule. */
import type { Command } from 'commander'
import type { NewSchedule, Overlap, Schedule } from '../server/schedule/contract.ts'
import type { Schedules } from '../server/schedule/schedules.ts'
import { argsOf } from './flags.ts'
import { addReadFlags, print, printJson, type ReadFlags } from './output.ts'
import { addPlaces, type PlaceFlags, placesOf } from './run-place.ts'

interface ScheduleFlags extends ReadFlags, PlaceFlags {
  cron?: string
  tz?: string
  overlap?: string
  jitter?: string
  catchUp?: boolean
  name?: string
  region?: string
  arg?: string[]
  count?: string
}

const HELP = `
Schedules need a server: \`sluice serve\` on the same --store. cron: five fields, or hourly, daily, weekly, monthly.

Examples:
  sluice schedule add books --cron '0 6 * * *' --tz Europe/Rome --arg pages=50
  sluice schedule list
  sluice schedule next books -n 5
  sluice schedule pause books
  sluice schedule run-now books`

export function defineSchedule(program: Command): void {
  const schedule = program.command('schedule').description('schedule runs (cron)').addHelpText('after', HELP)
  const commands = [
    schedule.command('list').description('list schedules with their next times and last results').action(run(listThem)),
    schedule
      .command('add <scraper>')
      .description('add a schedule for a scraper')
      .requiredOption('--cron <pattern>', 'cron expression (five fields), or hourly, daily, weekly, monthly')
      .option('--tz <zone>', 'time zone, such as Europe/Rome', 'UTC')
      .option('--overlap <what>', 'if the previous run is still active: skip, queue, cancel-old', 'skip')
      .option('--jitter <time>', 'random delay of up to this time', '0s')
      .option('--catch-up', 'make up for fires missed while no server was running')
      .option('--name <name>', 'name of the schedule; default: the name of the scraper')
      .option('--arg <name=value...>', 'scraper arguments')
      .option('--region <NAME>', 'only workers in this region may take its runs')
      .action(run(add)),
    schedule
      .command('next <name>')
      .description('show when it fires next')
      .option('-n, --count <N>', 'how many times', '5')
      .action(run(next)),
    schedule
      .command('pause <name>')
      .description('pause it until it is resumed')
      .action(run(pausing(true))),
    schedule
      .command('resume <name>')
      .description('fire again')
      .action(run(pausing(false))),
    schedule.command('remove <name>').description('remove it; its runs are kept').action(run(remove)),
    schedule.command('run-now <name>').description('let the server start its run now').action(run(runNow)),
  ]
  for (const command of commands) {
    addReadFlags(command, 'the schedules')
    addPlaces(command)
  }
}

type Work = (schedules: Schedules, flags: ScheduleFlags, word: string) => Promise<void>

/** Commander passes the argument first if there is one. */
function run(work: Work) {
  return async (...given: unknown[]) => {
    const [word, flags] = (typeof given[0] === 'string' ? given : ['', given[0]]) as [string, ScheduleFlags]
    const [{ openServeDatabase }, { Schedules }] = await Promise.all([
      import('../app/serve/server/database.ts'),
      import('../server/schedule/schedules.ts'),
    ])
    const { places } = await placesOf(flags)
    const { store, db } = await openServeDatabase(places)
    await using _ = store
    await work(new Schedules(db), flags, word)
  }
}

async function listThem(schedules: Schedules, flags: ScheduleFlags): Promise<void> {
  const all = await schedules.list()
  const withLast = await Promise.all(all.map(async (one) => ({ ...one, last: (await schedules.fires(one.id, 1))[0] })))
  if (flags.json) return printJson({ schedules: withLast })
  const { printable, table } = await import('./style.ts')
  const rows = withLast.map(({ name, scraper, cron, tz, isPaused, nextAtMs, last }) => [
    printable(name),
    scraper,
    `${cron} ${tz}`,
    isPaused ? 'paused' : new Date(nextAtMs).toISOString(),
    last === undefined ? 'not yet' : `${last.outcome} ${last.runId ?? printable(last.reason ?? '')}`,
  ])
  print(
    rows.length === 0
      ? 'no schedules; add one: sluice schedule add NAME --cron daily'
      : table([['name', 'scraper', 'when', 'next', 'last'], ...rows]),
  )
}

async function add(schedules: Schedules, flags: ScheduleFlags, scraper: string): Promise<void> {
  const [{ loadScraper }, { argumentNames, checkArgs }, { parseDurationMs }, { ScrapeError }, { OVERLAPS }] =
    await Promise.all([
      import('../config/load-scraper.ts'),
      import('../config/scraper-arguments.ts'),
      import('../core/options.ts'),
      import('../core/errors.ts'),
      import('../server/schedule/contract.ts'),
    ])
  const loaded = await loadScraper(scraper)
  const args = argsOf(flags, argumentNames(loaded.scraper))
  checkArgs(loaded.scraper, args)
  const jitterMs = parseDurationMs(flags.jitter ?? '0')
  if (!(jitterMs >= 0) || !(OVERLAPS as readonly string[]).includes(flags.overlap!))
    throw new ScrapeError('E_USAGE', '--jitter takes a time such as 5m, --overlap takes skip, queue or cancel-old')
  const schedule: NewSchedule = {
    name: flags.name ?? scraper,
    scraper,
    args: args as NewSchedule['args'],
    limits: {},
    cron: flags.cron!,
    tz: flags.tz!,
    overlap: flags.overlap as Overlap,
    jitterMs,
    isCatchUp: flags.catchUp === true,
    ...(flags.region === undefined ? {} : { region: flags.region }),
  }
  show(await schedules.create(schedule), flags)
}

function show(schedule: Schedule, flags: ScheduleFlags): void {
  const { name, isPaused, nextAtMs } = schedule
  if (flags.json) printJson(schedule)
  else if (!flags.quiet)
    print(isPaused ? `${name} is paused` : `${name} fires next at ${new Date(nextAtMs).toISOString()}`)
}

async function next(schedules: Schedules, flags: ScheduleFlags, word: string): Promise<void> {
  const { nextTimes } = await import('../server/schedule/cron.ts')
  const { cron, tz } = await schedules.get(word)
  const times = nextTimes(cron, tz, Date.now(), Number(flags.count) || 5).map((ms) => new Date(ms))
  if (flags.json) return printJson({ tz, times })
  const local = new Intl.DateTimeFormat('en-GB', { timeZone: tz, dateStyle: 'full', timeStyle: 'long' })
  print(times.map((time) => `${time.toISOString()}  ${local.format(time)}`).join('\n'))
}

const pausing =
  (isPaused: boolean): Work =>
  async (schedules, flags, word) => {
    await schedules.setPaused(word, isPaused)
    show(await schedules.get(word), flags)
  }

const remove: Work = async (schedules, flags, word) => {
  await schedules.remove(word)
  if (flags.json) printJson({ removed: word })
  else if (!flags.quiet) print(`${word} is gone; its runs are still there`)
}

/** Recorded as a pending fire: whichever server looks next starts it. */
const runNow: Work = async (schedules, flags, word) => {
  const schedule = await schedules.get(word)
  const fire = await schedules.fireNow(schedule, Date.now(), 'queued')
  if (flags.json) printJson(fire)
  else if (!flags.quiet) print(`${schedule.name} will be started by the server within a second`)
}
