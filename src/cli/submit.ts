/** `sluice submit`: puts one task of the task protocol on its stream. */
import type { Command } from 'commander'
import type { ResultMessage, TaskMessage } from '../protocol/messages.ts'
import { addOptions, collect, configOf } from './flags.ts'
import { addReadFlags, print, printJson, type ReadFlags } from './output.ts'

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
The task goes to whatever workers take its type: sluice worker --type TYPE, or programs in other languages
(docs/how-to/write-a-worker-in-another-language.md). What a task may say: docs/reference/messages.md.

Examples:
  sluice submit greenhouse --arg board=acme --wait
  sluice submit indeed --param search_term='software engineer' --param location=Berlin --param results_wanted=50`

/** Longest a retry is put off, and what a worker needs besides. */
const WAIT_SLACK_MS = 330_000

export function defineSubmit(program: Command): void {
  const command = program
    .command('submit')
    .argument('<type>', 'the scraper that is to do it')
    .description('put a task on the Redis streams of the task protocol')
    .option('--arg <name=value>', 'an argument of the scraper (may be repeated)', collect)
    .option(
      '--param <name=value>',
      'a parameter of the task: search_term, location, results_wanted … (may be repeated)',
      collect,
    )
    .option('--priority <N>', 'above 0: before the others')
    .option('--timeout <seconds>', 'how long a try may take; 300 unless told')
    .option('--max-retries <N>', 'tries after the first one; 3 unless told')
    .option('--wait [seconds]', 'wait for the result and print it; at most as long as all tries may take')
    .option('--prefix <text>', 'before the names of all streams', '')
    .addHelpText('after', HELP)
    .action(async (type: string, flags: SubmitFlags) => {
      process.exitCode = await submit(type, flags)
    })
  addOptions(addReadFlags(command, 'the task, or its result,'), ['frontier', 'redis'])
}

async function submit(type: string, flags: SubmitFlags): Promise<number> {
  const [{ submitTask }, { protocolRedis }, { ScrapeError }] = await Promise.all([
    import('../app/protocol/submit.ts'),
    import('../app/protocol/protocol-place.ts'),
    import('../core/errors.ts'),
  ])
  const { values } = await configOf(flags as unknown as Record<string, unknown>)
  const pairs = (given: string[] | undefined, flag: string) =>
    (given ?? []).map((pair) => {
      const at = pair.indexOf('=')
      if (at < 1) throw new ScrapeError('E_USAGE', `${flag} takes name=value, got ${JSON.stringify(pair)}`)
      return [pair.slice(0, at), pair.slice(at + 1)] as const
    })
  const args = Object.fromEntries(pairs(flags.arg, '--arg'))
  const named = Object.fromEntries(pairs(flags.param, '--param').map(([name, text]) => [name, spelled(name, text)]))
  const params = { ...named, ...(flags.arg === undefined ? {} : { args }) }
  const numbers = {
    priority: flags.priority,
    timeout: flags.timeout,
    max_retries: flags.maxRetries,
  }
  const given = Object.entries(numbers).filter(([, text]) => text !== undefined)
  const task = {
    scraper_type: type,
    params,
    ...Object.fromEntries(given.map(([name, text]) => [name, Number(text)])),
  }
  const wait = flags.wait === undefined ? {} : { wait: AbortSignal.timeout(waitMs(flags)) }
  const submitted = await submitTask({ redisUrl: protocolRedis(values), prefix: flags.prefix, task, ...wait })
  return report(submitted, flags)
}

/** Texts stay texts; what spells a number, a truth or a list is one. */
function spelled(name: string, text: string): unknown {
  if (name === 'search_term' || name === 'location') return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function waitMs({ wait, timeout, maxRetries }: SubmitFlags): number {
  if (typeof wait === 'string') return Math.max(0, Number(wait) || 0) * 1000
  return (Number(timeout ?? 300) * 1000 + WAIT_SLACK_MS) * (Number(maxRetries ?? 3) + 1)
}

function report(
  { task, result }: { task: TaskMessage; result: ResultMessage | undefined },
  flags: SubmitFlags,
): number {
  if (flags.wait === undefined) {
    if (flags.json) printJson(task)
    else if (!flags.quiet) print(task.task_id)
    return 0
  }
  if (result === undefined) {
    process.stderr.write(`task ${task.task_id}: no result yet; it is not lost\n`)
    return 4
  }
  if (flags.json) printJson(result)
  else if (!flags.quiet) {
    const why = result.error === null ? '' : `: ${result.error_code} ${result.error}`
    const records = result.jobs_data.length > 0 ? result.jobs_data : result.items
    process.stderr.write(`task ${task.task_id} ${result.status}${why}, ${result.jobs_found} found\n`)
    for (const record of records) print(JSON.stringify(record))
  }
  return result.status === 'success' ? 0 : 1
}
