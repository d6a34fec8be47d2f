/** `sluice files`: the files a run downloaded, and where they are. */
import type { Command } from 'commander'
import { addReadFlags, print, printJsonLine, type ReadFlags } from './output.ts'
import { addPlaces, type PlaceFlags, RUN_HELP, withRun } from './run-place.ts'

interface FilesFlags extends ReadFlags, PlaceFlags {
  user?: string
}

const HELP = `${RUN_HELP}

Examples:
  sluice files reports
  sluice files reports --user alice
  sluice files reports --json | jq -r .where`

export function defineFiles(program: Command): void {
  const command = program
    .command('files [run]')
    .description('list the files that a run stored: user, name, size, type, location')
    .option('--user <NAME>', 'only files of this user')
    .addHelpText('after', HELP)
    .action(async (run: string | undefined, flags: FilesFlags) => {
      process.exitCode = await files(run, flags)
    })
  addReadFlags(command, 'the records, one line each')
  addPlaces(command)
}

async function files(word: string | undefined, flags: FilesFlags): Promise<number> {
  const { formatBytes, printable } = await import('./style.ts')
  return await withRun(word, flags, async ({ run, commandOf }) => {
    let count = 0
    for await (const records of run.files()) {
      for (const record of records) {
        if (flags.user !== undefined && record.user !== flags.user) continue
        count++
        if (flags.quiet) continue
        const { user, name, bytes, contentType, where, isSame } = record
        const size = formatBytes(bytes).padStart(9)
        const line = `${(user || '-').padEnd(12)} ${size}  ${contentType.padEnd(20)} ${name}  ${where}${isSame ? '  (the same bytes)' : ''}`
        if (flags.json) printJsonLine(record)
        else print(printable(line))
      }
    }
    if (count === 0 && !flags.json && !flags.quiet) {
      const { pending, claimed } = await waitingFiles(run.frontier)
      const left = pending + claimed === 0 ? '' : ` yet: ${pending} wait, ${claimed} are being downloaded`
      print(`run ${run.record.id} has stored no files${left}; ${commandOf('stats', run.word)}`)
    }
    return 0
  })
}

async function waitingFiles(
  frontier: { stats(): Promise<{ lanes: Record<string, Lane> }> } | undefined,
): Promise<Lane> {
  const { isFileLane } = await import('../core/task.ts')
  const lanes = Object.entries((await frontier?.stats())?.lanes ?? {}).filter(([lane]) => isFileLane(lane))
  const sum = (of: (lane: Lane) => number) => lanes.reduce((total, [, lane]) => total + of(lane), 0)
  return { pending: sum(({ pending }) => pending), claimed: sum(({ claimed }) => claimed) }
}

interface Lane {
  pending: number
  claimed: number
}
