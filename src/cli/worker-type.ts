/** `sluice worker --type`: takes tasks of the task protocol, with one or several instances. */

import type { Command } from 'commander'
import type { Vitals } from '../app/fleet/worker-vitals.ts'
import type { TaskEnd } from '../app/protocol/instance.ts'
import type { Config } from '../config/config.ts'
import { every } from '../core/every.ts'
import { note, print, printJson } from './output.ts'
import type { Signals } from './worker-signals.ts'

export interface TypeFlags {
  type?: string
  scraper?: string
  instances?: string
  as?: string
  prefix?: string
  health?: string
  retryDelay?: string
  instanceMemory?: string
  json?: boolean
  quiet?: boolean
  runId?: string
  tor?: boolean
}

export function addTypeFlags(command: Command): void {
  command
    .option('--type <name>', 'take tasks for this scraper from the Redis streams of the task protocol instead of a run')
    .option('--instances <N>', 'with --type: instances, each with its own --concurrency (default: 1)')
    .option('--as <threads|processes>', 'with --type: run each instance as a thread or a process (default: threads)')
    .option('--prefix <text>', 'with --type: prefix of all stream names')
    .option('--health <time>', 'with --type: interval of the health reports (default: 10s)')
    .option('--retry-delay <time>', 'with --type: maximum delay before the first retry of a task (default: 5s)')
    .option(
      '--instance-memory <size>',
      'with --type: maximum heap of a thread; above it, the thread is replaced (default: 512MiB)',
    )
}

interface TypeRequest {
  flags: TypeFlags
  config: Config
  batchSize: number
  signals: Signals
  vitals: Vitals
}

const SAY_EVERY_MS = 10_000

export async function workOnType({ flags, config, batchSize, signals, vitals }: TypeRequest): Promise<number> {
  const [{ startInstances }, { workerType }, { protocolRedis }, { withoutPassword }, { printable }] = await Promise.all(
    [
      import('../app/protocol/instances.ts'),
      import('../app/protocol/open-instance.ts'),
      import('../app/protocol/protocol-place.ts'),
      import('../runs/run-identity.ts'),
      import('../observe/terminal.ts'),
    ],
  )
  const { count, as, healthMs, retryMs, heapMbMax } = await checked(flags)
  const spec = {
    scraper: flags.type!,
    config,
    redisUrl: protocolRedis(config.values),
    prefix: flags.prefix ?? '',
    tasksMax: batchSize,
    healthMs,
    retryMs,
  }
  const { type } = await workerType(spec) // report problems once, not in every instance
  const isQuiet = flags.quiet === true || flags.json === true
  const say = (line: string) => void (isQuiet || note(`${printable(line)}`))
  const done = { tasks: 0, failed: 0, retried: 0, items: 0, requests: 0 }
  const onTask = ({ status, items, requests }: TaskEnd) => {
    if (status === 'retry') done.retried++
    else done.tasks++
    if (status === 'failed') done.failed++
    done.items += items
    done.requests += requests
  }
  const onAnswer = () => vitals.heardOf('queue')
  const instances = startInstances({ spec, type, count, as, heapMbMax, onLog: say, onTask, onAnswer })
  say(
    `${count} ${count === 1 ? 'instance' : 'instances'} (${as}) take tasks of type ${type} from ${withoutPassword(spec.redisUrl)}`,
  )
  const saying = every(() => say(`${done.tasks} tasks, ${done.failed} failed, ${done.items} items`), SAY_EVERY_MS)
  signals.onStop((reason) => {
    say(`${reason}: finishing started tasks, returning the rest`)
    instances.stop()
  })
  try {
    await instances.ended
  } finally {
    clearInterval(saying)
  }
  if (flags.json) printJson({ type, instances: count, ...done })
  else if (!flags.quiet)
    print(`${done.tasks} tasks, ${done.failed} failed, ${done.retried} retried, ${done.items} items`)
  return 4
}

/** All problems in one message. */
async function checked(flags: TypeFlags) {
  const [{ parseBytes, parseDurationMs }, { ScrapeError }] = await Promise.all([
    import('../core/options.ts'),
    import('../core/errors.ts'),
  ])
  const count = Number(flags.instances ?? 1)
  const healthMs = parseDurationMs(flags.health ?? '10s')
  const retryMs = parseDurationMs(flags.retryDelay ?? '5s')
  const heapMbMax = parseBytes(flags.instanceMemory ?? '512MiB') / 1024 ** 2
  const as = flags.as ?? 'threads'
  const problems = [
    flags.scraper !== undefined && '--type takes tasks of the task protocol, --scraper the runs of a fleet: choose one',
    flags.runId !== undefined && '--run-id is for the runs of a fleet: leave it out, or --type',
    flags.tor === true && '--tor is for the runs of a fleet: with --type name the proxies there are, with --proxies',
    !(Number.isSafeInteger(count) && count >= 1 && count <= 64) && '--instances takes a whole number from 1 to 64',
    as !== 'threads' && as !== 'processes' && '--as takes threads or processes',
    !(healthMs >= 100 && healthMs <= 3_600_000) && '--health takes a time from 100ms to 1h',
    !(retryMs >= 0 && retryMs <= 3_600_000) && '--retry-delay takes a time up to 1h',
    !(heapMbMax >= 32 && heapMbMax <= 65_536) && '--instance-memory takes a size from 32MiB',
  ].filter((problem) => problem !== false)
  if (problems.length > 0) throw new ScrapeError('E_USAGE', problems[0]!, { notes: problems.slice(1) })
  return { count, as: as as 'threads' | 'processes', healthMs, retryMs, heapMbMax }
}
