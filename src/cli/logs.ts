/** `sluice logs`: what happened in a run, line by line, and what is happening now. In constant memory, however long the log. */
import type { Command } from 'commander'
import type { OpenRun } from '../runs/run-view.ts'
import { addReadFlags, type ReadFlags } from './output.ts'
import { addPlaces, type PlaceFlags, RUN_HELP, withRun } from './run-place.ts'
import type { Paint } from './style.ts'

interface LogsFlags extends ReadFlags, PlaceFlags {
  follow?: boolean
  level: string
}

const HELP = `${RUN_HELP}

Examples:
  sluice logs books
  sluice logs books -f --level error
  sluice logs books --json | jq -r .url`

const LEVELS: readonly string[] = ['debug', 'info', 'warn', 'error']
const FOLLOW_MS = 500

export function defineLogs(program: Command): void {
  const command = program
    .command('logs [run]')
    .description('print the log of a run, from all its workers')
    .option('-f, --follow', 'print new lines until the run ends')
    .option('--level <debug|info|warn|error>', 'minimum level', 'debug')
    .addHelpText('after', HELP)
    .action(async (run: string | undefined, flags: LogsFlags) => {
      process.exitCode = await logs(run, flags)
    })
  addReadFlags(command, 'the raw log lines,')
  addPlaces(command)
}

async function logs(word: string | undefined, flags: LogsFlags): Promise<number> {
  const [{ toStdout }, { ScrapeError }, { didYouMean }, { paintFor }] = await Promise.all([
    import('./export.ts'),
    import('../core/errors.ts'),
    import('../core/did-you-mean.ts'),
    import('./style.ts'),
  ])
  const least = LEVELS.indexOf(flags.level)
  if (least === -1) {
    const near = didYouMean(flags.level, LEVELS)
    throw new ScrapeError('E_USAGE', `there is no level ${JSON.stringify(flags.level)}`, {
      notes: near === undefined ? [] : [`did you mean ${near}?`],
      fix: `--level ${LEVELS.join(' or ')}`,
    })
  }
  return await withRun(word, flags, async ({ run }) => {
    const paint = paintFor(process.stdout)
    const show = flags.json ? (line: LogLine) => line.text : await humanLine(paint)
    if (!flags.quiet || flags.json) await toStdout(pieces(run, { least, isFollowed: flags.follow === true, show }))
    return 0
  })
}

interface LogLine {
  text: string
  /** Undefined for a line that is not JSON: it is shown unchanged. */
  fields: { time?: string; level?: string; message?: string; url?: string } | undefined
}

async function* pieces(
  run: OpenRun,
  { least, isFollowed, show }: { least: number; isFollowed: boolean; show: (line: LogLine) => string },
): AsyncGenerator<string> {
  for (;;) {
    const isComplete = run.log.isComplete() // asked before reading: lines written in between are read next time
    for await (const lines of run.log.read()) {
      const shown = lines.map(parse).filter((line) => weightOf(line) >= least)
      if (shown.length > 0) yield shown.map((line) => `${show(line)}\n`).join('')
    }
    if (!isFollowed || isComplete) return
    await new Promise((resolve) => setTimeout(resolve, FOLLOW_MS))
    await run.refresh()
  }
}

function parse(text: string): LogLine {
  try {
    return { text, fields: JSON.parse(text) as LogLine['fields'] }
  } catch {
    return { text, fields: undefined }
  }
}

function weightOf({ fields }: LogLine): number {
  const weight = LEVELS.indexOf(fields?.level ?? '')
  return weight === -1 ? LEVELS.length : weight // lines of unknown level are shown
}

const COLOURS = { debug: 'dim', info: 'cyan', warn: 'yellow', error: 'red' } as const

/** Time, level, message, url. Content from the web is shown as plain text: its escape sequences never reach the terminal. */
async function humanLine(paint: Paint): Promise<(line: LogLine) => string> {
  const { printable } = await import('./style.ts')
  return ({ text, fields }) => {
    if (fields === undefined || fields === null) return printable(text)
    const { time = '', level = '', message = '', url } = fields
    const colour = COLOURS[level as keyof typeof COLOURS] ?? 'dim'
    const head = `${paint('dim', printable(time))} ${paint(colour, printable(level).padEnd(5))} ${printable(message)}`
    return url === undefined || message.includes(url) ? head : `${head}  ${paint('dim', printable(url))}`
  }
}
