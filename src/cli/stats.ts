/** `sluice stats`: the numbers of a run, going on or ended. */
import type { Command } from 'commander'
import type { OpenRun } from '../app/open-run.ts'
import type { FrontierStats } from '../frontier/contract.ts'
import { addOptions, configOf } from './flags.ts'
import { addReadFlags, print, printJson, type ReadFlags, shellWord } from './output.ts'
import type { Paint } from './style.ts'

interface StatsFlags extends ReadFlags {
  watch?: boolean
  out?: string
  frontier?: string
}

const HELP = `
A run is named by its id, its scraper (the latest run of it), a path, or not at all (the latest run of all).

Examples:
  sluice stats
  sluice stats books --watch
  sluice stats 20261115_113501_x7k2 --json`

const WATCH_MS = 1_000

export function defineStats(program: Command): void {
  const command = program
    .command('stats [run]')
    .description('show how far a run is: pages, items, rate, what is left')
    .option('--watch', 'once a second, until the run ends')
    .addHelpText('after', HELP)
    .action(async (run: string | undefined, flags: StatsFlags) => {
      process.exitCode = await stats(run, flags)
    })
  addReadFlags(command, 'the numbers')
  addOptions(command, ['out', 'frontier'])
}

async function stats(word: string | undefined, flags: StatsFlags): Promise<number> {
  const { openRun, runStats } = await import('../app/open-run.ts')
  const { values } = await configOf(flags as Record<string, unknown>)
  const show = await createView(flags, values.out)
  let before: { settled: number; atMs: number } | undefined
  for (;;) {
    await using run = await openRun(word, values)
    word = run.folder.path // the latest may change while one watches
    const numbers = await runStats(run)
    const settled = numbers.completed + numbers.failed
    const atMs = Date.now()
    const rateNow =
      before === undefined ? undefined : Math.max(0, (settled - before.settled) / ((atMs - before.atMs) / 1000))
    show(run, numbers, rateNow)
    if (!flags.watch || !run.isAlive) return 0
    before = { settled, atMs }
    await new Promise((resolve) => setTimeout(resolve, WATCH_MS))
  }
}

type View = (run: OpenRun, numbers: FrontierStats, rateNow: number | undefined) => void

async function createView(flags: StatsFlags, out: string): Promise<View> {
  if (flags.quiet && !flags.json) return () => {}
  const style = await import('./style.ts')
  const { outFlag, resumeCommand } = await import('../app/open-run.ts')
  const { self } = await import('../observe/terminal.ts')
  const paint = style.paintFor(process.stdout)
  const canRedraw = flags.watch === true && process.stdout.isTTY === true
  return (run, numbers, rateNow) => {
    const rate = rateNow ?? averageRate(run, numbers)
    if (flags.json) {
      if (flags.watch) print(JSON.stringify(toJson(run, numbers, rate)))
      else printJson(toJson(run, numbers, rate))
      return
    }
    if (flags.watch && !canRedraw && run.isAlive) {
      const { completed, failed, remaining, items } = numbers
      print(`${completed} done, ${failed} failed, ${remaining} left, ${items} items, ${style.formatRate(rate)} pages/s`)
      return
    }
    const commandOf = (words: string[]) => [self(), ...words].map(shellWord).join(' ')
    const resume = commandOf(resumeCommand(run, out))
    const groups = commandOf(['dlq', 'groups', run.record.id, ...outFlag(out)])
    const head = canRedraw ? '\x1b[H\x1b[J' : ''
    print(head + statsText({ run, numbers, rate, isRateNow: rateNow !== undefined, resume, groups, paint, style }))
  }
}

function toJson({ record, isAlive, folder }: OpenRun, numbers: FrontierStats, rate: number) {
  const { pending, claimed, completed, failed, remaining, dead, items, isPaused, pauseReason } = numbers
  return {
    id: record.id,
    scraper: record.scraper,
    state: record.state,
    reason: record.reason,
    isAlive,
    pending,
    claimed,
    completed,
    failed,
    remaining,
    dead,
    items,
    /** Pages settled a second. */
    rate: Math.round(rate * 100) / 100,
    /** Known for a run that nobody works on; a working one does not tell yet. */
    workers: isAlive ? null : 0,
    isPaused,
    pauseReason: pauseReason ?? null,
    lanes: numbers.lanes,
    hosts: numbers.hosts,
    startedAt: record.startedAt,
    finishedAt: isAlive ? null : record.finishedAt,
    durationMs: record.durationMs,
    folder: folder.path,
  }
}

function averageRate({ record }: OpenRun, { completed, failed }: FrontierStats): number {
  // The record is up to 2 s older than the queue: its own count goes with its own time.
  const settled = record.state === 'running' ? record.pages.ok + record.pages.failed : completed + failed
  return record.durationMs > 0 ? (settled / record.durationMs) * 1000 : 0
}

interface Sheet {
  run: OpenRun
  numbers: FrontierStats
  rate: number
  isRateNow: boolean
  resume: string
  groups: string
  paint: Paint
  style: typeof import('./style.ts')
}

const HOSTS_SHOWN_MAX = 5

function statsText({ run, numbers, rate, isRateNow, resume, groups, paint, style }: Sheet): string {
  const { record, isAlive } = run
  const { formatCount, formatMs, formatRate, plural, printable, table } = style
  const count = (value: number) => formatCount(value)
  const state = isAlive ? (numbers.isPaused ? 'paused' : 'running') : record.state
  const colour = { running: 'cyan', paused: 'yellow', finished: 'green', stopped: 'yellow', failed: 'red' } as const
  const why = numbers.isPaused ? numbers.pauseReason : record.reason
  const rows: [string, string][] = [
    ['pending', count(numbers.pending)],
    [
      'claimed',
      `${count(numbers.claimed)}${!isAlive && numbers.claimed > 0 ? '  (of a lost worker; back when resumed)' : ''}`,
    ],
    ['completed', count(numbers.completed)],
    ['failed', numbers.failed > 0 ? paint('red', count(numbers.failed)) : '0'],
    ['remaining', `${count(numbers.remaining)} of ${count(numbers.seen)} seen`],
    ['dead', count(numbers.dead)],
    ['items', count(numbers.items)],
    ['rate', `${formatRate(rate)} pages/s${isRateNow ? ' now' : ' on average'}`],
    ['time', `${formatMs(record.durationMs)} since ${record.startedAt}`],
  ]
  const busiest = numbers.hosts.filter((host) => host.pending > 0).slice(0, HOSTS_SHOWN_MAX)
  if (busiest.length > 0)
    rows.push(['hosts', busiest.map((host) => `${printable(host.host)} (${count(host.pending)} pending)`).join(', ')])
  const isUnfinished = !isAlive && numbers.remaining > 0
  return [
    `${paint('bold', `${record.scraper} ${record.id}`)}  ${paint(colour[state], state)}${why ? `: ${printable(why)}` : ''}`,
    table(
      rows.map(([label, text]) => [paint('dim', label), text]),
      { indent: 2 },
    ),
    ...(numbers.dead > 0 ? [`  ${plural(numbers.dead, 'dead letter')}: ${paint('cyan', groups)}`] : []),
    ...(isUnfinished ? [`  go on: ${paint('cyan', resume)}`] : []),
  ].join('\n')
}
