/** `sluice dlq`: the pages a run gave up on, by cause; to inspect, retry, or drop. */
import type { Command } from 'commander'
import type { DeadFilter, DeadLetter } from '../frontier/contract.ts'
import type { OpenRun } from '../runs/run-view.ts'
import { collect } from './flags.ts'
import { addReadFlags, note, print, printJson, type ReadFlags } from './output.ts'
import { addPlaces, type PlaceFlags, RUN_HELP, withRun } from './run-place.ts'

export interface DlqFlags extends ReadFlags, PlaceFlags {
  class?: string
  code?: string
  host?: string
  id?: string[]
  limit?: string
  yes?: boolean
}

const HELP = `${RUN_HELP}

Examples:
  sluice dlq groups
  sluice dlq list books --class timeout
  sluice dlq show books 3e55e7f7
  sluice dlq retry books --code E_SERVER
  sluice dlq drop books --class not-found`

export function defineDlq(program: Command): void {
  const dlq = program
    .command('dlq')
    .description('list, retry or drop dead letters: the pages a run gave up on')
    .helpCommand(false)
    .addHelpText('after', HELP)

  const part = (
    usage: string,
    what: string,
    json: string,
    action: (words: string[], flags: DlqFlags) => Promise<number>,
  ) => {
    const command = dlq.command(usage).description(what)
    command.action(async (...given: unknown[]) => {
      const words = given
        .slice(0, -2)
        .flat()
        .filter((word) => typeof word === 'string')
      process.exitCode = await action(words, given.at(-2) as DlqFlags)
    })
    addReadFlags(command, json)
    addPlaces(command)
    return command
  }
  part('groups [run]', 'group dead letters by cause, most frequent first', 'the groups', showGroups)
  const list = part('list [run]', 'list dead letters, oldest first', 'the letters', showList)
  addFilter(list).option('--limit <N>', 'maximum number of dead letters', '50')
  part(
    'show <run-or-letter...>',
    'show one dead letter: [run] and its id (or the start of it) or URL',
    'the letter',
    showOne,
  )
  const retry = part(
    'retry [run]',
    'put dead letters back into the queue, with fresh retries',
    'the count and the next command',
    retryThem,
  )
  addFilter(retry)
  const drop = part('drop [run]', 'delete dead letters; their pages still count as failed', 'the count', dropThem)
  addFilter(drop).option('--yes', 'do not ask')
}

export function addFilter(command: Command): Command {
  return command
    .option('--class <name>', 'only this error class, e.g. timeout')
    .option('--code <CODE>', 'only this error code, e.g. E_NOT_FOUND')
    .option('--host <host>', 'only this host (with its port, if any)')
    .option('--id <id>', 'only this dead letter, or the start of its id (may be repeated)', collect)
}

async function filterOf(run: OpenRun, flags: DlqFlags): Promise<DeadFilter> {
  const [{ frontierOf }, { findLetter }, { findErrorCode }, { ERRORS }, { ScrapeError }, { didYouMean }] =
    await Promise.all([
      import('../runs/run-view.ts'),
      import('../runs/dead-letters.ts'),
      import('./explain.ts'),
      import('../core/error-table.ts'),
      import('../core/errors.ts'),
      import('../core/did-you-mean.ts'),
    ])
  const filter: DeadFilter = {}
  if (flags.code !== undefined) filter.code = findErrorCode(flags.code)
  if (flags.class !== undefined) {
    const classes = new Set(Object.values(ERRORS).map((kind) => kind.class))
    if (!classes.has(flags.class)) {
      const near = didYouMean(flags.class, classes)
      throw new ScrapeError('E_USAGE', `there is no error class ${JSON.stringify(flags.class)}`, {
        notes: [near === undefined ? `known: ${[...classes].sort().join(', ')}` : `did you mean ${near}?`],
        fix: 'The classes are in the second column of `sluice dlq groups`.',
      })
    }
    filter.class = flags.class
  }
  if (flags.host !== undefined) filter.host = flags.host
  if (flags.id !== undefined) {
    const frontier = frontierOf(run)
    const ids: string[] = []
    for (const word of flags.id) ids.push((await findLetter(frontier, word)).task.id)
    filter.ids = ids
  }
  return filter
}

const filterWords = ({ class: cls, code, host, id = [] }: DlqFlags) => [
  ...(cls === undefined ? [] : ['--class', cls]),
  ...(code === undefined ? [] : ['--code', code]),
  ...(host === undefined ? [] : ['--host', host]),
  ...id.flatMap((one) => ['--id', one]),
]

async function showGroups([word]: string[], flags: DlqFlags): Promise<number> {
  return await withRun(word, flags, async ({ run, commandOf }) => {
    const [{ frontierOf }, { groupJson, groupsText }] = await Promise.all([
      import('../runs/run-view.ts'),
      import('./dlq-text.ts'),
    ])
    const groups = await frontierOf(run).dead.groups()
    if (flags.json) printJson({ run: run.record.id, scraper: run.record.scraper, groups: groups.map(groupJson) })
    else if (!flags.quiet) print(groupsText(groups, run, commandOf))
    return 0
  })
}

const LIMIT_MAX = 1_000_000

async function showList([word]: string[], flags: DlqFlags): Promise<number> {
  return await withRun(word, flags, async ({ run, commandOf }) => {
    const [{ frontierOf }, { deadLetters }, { letterJson, listText }, { ScrapeError }] = await Promise.all([
      import('../runs/run-view.ts'),
      import('../runs/dead-letters.ts'),
      import('./dlq-text.ts'),
      import('../core/errors.ts'),
    ])
    const limit = Number(flags.limit)
    if (!Number.isSafeInteger(limit) || limit < 1 || limit > LIMIT_MAX)
      throw new ScrapeError(
        'E_USAGE',
        `--limit takes a whole number from 1 to ${LIMIT_MAX}, got ${JSON.stringify(flags.limit)}`,
      )
    const letters: DeadLetter[] = []
    let hasMore = false
    for await (const letter of deadLetters(frontierOf(run), await filterOf(run, flags))) {
      hasMore = letters.length === limit
      if (hasMore) break
      letters.push(letter)
    }
    if (flags.json)
      printJson({ run: run.record.id, scraper: run.record.scraper, hasMore, letters: letters.map(letterJson) })
    else if (!flags.quiet)
      print(listText(letters, { run, hasMore, commandOf, isFiltered: filterWords(flags).length > 0 }))
    return 0
  })
}

async function showOne(words: string[], flags: DlqFlags): Promise<number> {
  const { ScrapeError } = await import('../core/errors.ts')
  const [first, second, ...rest] = words
  if (rest.length > 0)
    throw new ScrapeError('E_USAGE', `dlq show takes [run] and one letter, got ${words.length} words`)
  const [runWord, letterWord] = second === undefined ? [undefined, first!] : [first, second]
  return await withRun(runWord, flags, async ({ run, commandOf }) => {
    const [{ frontierOf }, { findLetter }, { letterJson, letterText }] = await Promise.all([
      import('../runs/run-view.ts'),
      import('../runs/dead-letters.ts'),
      import('./dlq-text.ts'),
    ])
    const letter = await findLetter(frontierOf(run), letterWord)
    const kept = letter.snapshot === undefined ? undefined : await run.snapshot(letter.snapshot)
    const path = kept?.place ?? null
    const picture = letter.snapshot === undefined ? undefined : await run.picture(letter.snapshot)
    const seen = { snapshot: path, picture: picture ?? null, head: kept?.head ?? null }
    if (flags.json) printJson({ run: run.record.id, ...letterJson(letter), ...seen })
    else if (!flags.quiet) print(letterText(letter, { run, path, picture, head: kept?.head, commandOf }))
    return 0
  })
}

export async function retryThem([word]: string[], flags: DlqFlags): Promise<number> {
  return await withRun(word, flags, async ({ run, resume }) => {
    const [{ retryLetters }, { plural, paintFor }] = await Promise.all([
      import('../runs/dead-letters.ts'),
      import('./style.ts'),
    ])
    const retried = await retryLetters(run, await filterOf(run, flags))
    const next = retried === 0 || run.isAlive ? null : resume()
    if (flags.json) printJson({ run: run.record.id, retried, isAlive: run.isAlive, next })
    else if (!flags.quiet) {
      const paint = paintFor(process.stdout)
      if (retried === 0) print('no dead letter fits: nothing put back')
      else if (next === null) print(`${plural(retried, 'dead letter')} put back; the run is active and picks them up`)
      else
        print(
          `${plural(retried, 'dead letter')} put back with fresh retries; now resume the run:\n  ${paint('cyan', next)}`,
        )
    }
    return 0
  })
}

async function dropThem([word]: string[], flags: DlqFlags): Promise<number> {
  return await withRun(word, flags, async ({ run }) => {
    const [{ dropLetters, deadLetters }, { frontierOf }, { plural }] = await Promise.all([
      import('../runs/dead-letters.ts'),
      import('../runs/run-view.ts'),
      import('./style.ts'),
    ])
    const filter = await filterOf(run, flags)
    let count = 0
    for await (const _ of deadLetters(frontierOf(run), filter)) count++
    if (count > 0 && !flags.yes) {
      const question = `${plural(count, 'dead letter')} of ${run.record.scraper} ${run.record.id} will be forgotten.`
      if (!(await isConfirmed(question))) {
        note('nothing dropped')
        return 1
      }
    }
    const dropped = count === 0 ? 0 : await dropLetters(run, filter)
    if (flags.json) printJson({ run: run.record.id, dropped })
    else if (!flags.quiet)
      print(
        dropped === 0
          ? 'no dead letter fits: nothing dropped'
          : `${plural(dropped, 'dead letter')} dropped; they stay counted as failed`,
      )
    return 0
  })
}

/** Asks on a terminal; a script must pass --yes. */
async function isConfirmed(question: string): Promise<boolean> {
  if (process.stdin.isTTY !== true || process.stderr.isTTY !== true) {
    const { ScrapeError } = await import('../core/errors.ts')
    throw new ScrapeError('E_USAGE', 'dlq drop asks for confirmation, and there is no terminal to ask on', {
      notes: [question],
      fix: 'Add --yes.',
    })
  }
  const { createInterface } = await import('node:readline/promises')
  const line = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return (await line.question(`${question} Type "drop" to confirm: `)).trim() === 'drop'
  } finally {
    line.close()
  }
}
