/** `sluice submit`: adds one task of the task protocol to its stream. */
import type { Command } from 'commander'
import { ScrapeError } from '../core/errors.ts'
import { parseDurationMs } from '../core/options.ts'
import { verbatim } from '../core/redact.ts'
import type { ResultMessage, TaskMessage } from '../protocol/messages.ts'
import { addOptions, collect, configOf } from './flags.ts'
import { addReadFlags, note, print, printData, printJson, type ReadFlags } from './output.ts'

interface SubmitFlags extends ReadFlags {
  arg?: string[]
  param?: string[]
  priority?: string
  timeout?: string
  maxRetries?: string
  prefix: string
  wait?: boolean | string
}

const HELP = `
Any worker for the type may take the task: sluice worker --type TYPE, or a program in another language
(docs/how-to/write-a-worker-in-another-language.md). Fields of a task: docs/reference/messages.md.

Examples:
  sluice submit greenhouse --arg board=acme --wait
  sluice submit indeed --param search_term='software engineer' --param location=Berlin --param results_wanted=50`

/** The longest retry delay, plus what a worker needs in addition. */
const WAIT_SLACK_MS = 330_000
const SECONDS_MAX = 86_400
/** A longer timer fires at once. */
const TIMER_MS_MAX = 2 ** 31 - 1
/** A search for 2026 is a search for text. */
const TEXTS = new Set(['search_term', 'location', 'job_type', 'proxy', 'user_agent'])

export function defineSubmit(program: Command): void {
  const command = program
    .command('submit')
    .argument('<type>', 'the scraper for the task')
    .description('submit a task to the Redis streams of the task protocol')
    .option('--arg <name=value>', 'a scraper argument (may be repeated)', collect)
    .option(
      '--param <name=value>',
      'a task parameter: search_term, location, results_wanted … (may be repeated)',
      collect,
    )
    .option('--priority <N>', 'above 0: before other tasks')
    .option('--timeout <time>', 'timeout for one attempt: seconds, or 90s, 5m … (default: 300)')
    .option('--max-retries <N>', 'retries after the first attempt (default: 3)')
    .option(
      '--wait [time]',
      'wait for the result and print it, up to this time (default: as long as all attempts may take)',
    )
    .option('--prefix <text>', 'prefix of all stream names', '')
    .addHelpText('after', HELP)
    .action(async (type: string, flags: SubmitFlags) => {
      process.exitCode = await submit(type, flags)
    })
  addOptions(addReadFlags(command, 'the task, or its result,'), ['frontier', 'redis'])
}

async function submit(type: string, flags: SubmitFlags): Promise<number> {
  const [{ submitTask }, { protocolRedis }, { PARAM_NAMES }] = await Promise.all([
    import('../app/protocol/submit.ts'),
    import('../app/protocol/protocol-place.ts'),
    import('../protocol/messages.ts'),
  ])
  const { frontier, redis } = flags as { frontier?: string; redis?: string } // its --timeout is not that of a run
  const { values } = await configOf({ frontier, redis })
  const params = paramsOf(flags, PARAM_NAMES)
  const timeout = secondsOf(flags.timeout, '--timeout', 1)
  const waitSeconds = typeof flags.wait === 'string' ? secondsOf(flags.wait, '--wait', 0) : undefined
  const numbers = Object.entries({ priority: flags.priority, max_retries: flags.maxRetries })
  const given = numbers.filter(([, text]) => text !== undefined).map(([name, text]) => [name, Number(text)])
  const task = {
    scraper_type: type,
    params,
    ...(timeout === undefined ? {} : { timeout }),
    ...Object.fromEntries(given),
  }
  const allTriesMs = ((timeout ?? 300) * 1000 + WAIT_SLACK_MS) * (Number(flags.maxRetries ?? 3) + 1)
  const waitMs = waitSeconds === undefined ? allTriesMs : waitSeconds * 1000
  const wait = flags.wait === undefined ? {} : { wait: AbortSignal.timeout(Math.min(TIMER_MS_MAX, waitMs)) }
  const submitted = await submitTask({ redisUrl: protocolRedis(values), prefix: flags.prefix, task, ...wait })
  return await report(submitted, flags)
}

/** A parameter that a worker would take as a scraper argument is probably a mistake: arguments have their own flag. */
function paramsOf({ arg, param }: SubmitFlags, known: readonly string[]): Record<string, unknown> {
  const named = pairsOf(param, '--param')
  const unknown = named.flatMap(([name]) => (known.includes(name) ? [] : [name]))
  if (unknown.length > 0)
    throw new ScrapeError('E_USAGE', `--param ${unknown.join(', ')}: no such parameter of a task`, {
      notes: [`known: ${known.join(', ')}`],
      fix: 'An argument of the scraper is given with --arg name=value.',
    })
  const params = Object.fromEntries(named.map(([name, text]) => [name, spelled(name, text)]))
  return { ...params, ...(arg === undefined ? {} : { args: Object.fromEntries(pairsOf(arg, '--arg')) }) }
}

function pairsOf(given: readonly string[] | undefined, flag: string): [name: string, text: string][] {
  return (given ?? []).map((pair) => {
    const at = pair.indexOf('=')
    if (at < 1) throw new ScrapeError('E_USAGE', `${flag} takes name=value, and one has no name or no =`)
    return [pair.slice(0, at), pair.slice(at + 1)]
  })
}

/** Plain numbers are seconds, as on the wire. */
function secondsOf(text: string | undefined, flag: string, min: number): number | undefined {
  if (text === undefined) return undefined
  const seconds = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : parseDurationMs(text) / 1000
  if (seconds >= min && seconds <= SECONDS_MAX) return seconds
  const what = `seconds, or a time such as 90s or 5m, from ${min} s to ${SECONDS_MAX} s`
  throw new ScrapeError('E_USAGE', `${flag} takes ${what}, got ${JSON.stringify(text)}`)
}

/** Texts stay texts; anything else that reads as a number, a boolean or a list becomes one. */
function spelled(name: string, text: string): unknown {
  if (TEXTS.has(name)) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

async function report(
  { task, result }: { task: TaskMessage; result: ResultMessage | undefined },
  flags: SubmitFlags,
): Promise<number> {
  if (flags.wait === undefined) {
    const { withoutSecrets } = await import('../protocol/shown.ts')
    if (flags.json) printJson(withoutSecrets(task))
    else if (!flags.quiet) print(task.task_id)
    return 0
  }
  if (result === undefined) {
    note(`task ${task.task_id}: no result yet; the task is not lost`)
    return 4
  }
  if (flags.json) printJson({ ...result, jobs_data: verbatim(result.jobs_data), items: verbatim(result.items) })
  else if (!flags.quiet) {
    const why = result.error === null ? '' : `: ${result.error_code} ${result.error}`
    const records = result.jobs_data.length > 0 ? result.jobs_data : result.items
    note(`task ${task.task_id} ${result.status}${why}, ${result.jobs_found} found`)
    for (const record of records) printData(JSON.stringify(record))
  }
  return result.status === 'success' ? 0 : 1
}
