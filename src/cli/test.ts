/** `sluice test`: replays saved pages offline, and compares the output with what was recorded. */
import type { Command } from 'commander'
import type { Replayed } from '../app/tools/replay.ts'
import { addReadFlags, print, printJson, type ReadFlags } from './output.ts'

interface TestFlags extends ReadFlags {
  update?: boolean
}

const HELP = `
Pages are saved beside the scraper by: sluice run NAME --record --pages 20
Exit code 0 when every page reads as before, 1 on a difference, 2 when there are no pages. Pages whose handler uses the
browser's page cannot be replayed: they are counted, not compared.

Examples:
  sluice test books
  sluice test books --update      after a change that was meant`

export function defineTest(program: Command): void {
  const command = program
    .command('test <scraper>')
    .description('replay the saved pages of a scraper, offline')
    .option('--update', 'what the scraper makes of the pages now is what is expected from now on')
    .addHelpText('after', HELP)
    .action(async (name: string, flags: TestFlags) => {
      process.exitCode = await test(name, flags)
    })
  addReadFlags(command, 'the results')
}

async function test(name: string, flags: TestFlags): Promise<number> {
  const [{ loadScraper, pagesFolder }, { replay }] = await Promise.all([
    import('../config/load-scraper.ts'),
    import('../app/tools/replay.ts'),
  ])
  const { scraper, file } = await loadScraper(name)
  const folder = pagesFolder(file)
  const first = await replay(scraper, folder, { file, update: flags.update === true })
  // Read once more: a page that the update could not accept is still a failure.
  const pages = flags.update ? await replay(scraper, folder, { file }) : first
  const failed = pages.filter((page) => page.problems.length > 0).length
  const notReplayable = pages.filter((page) => page.notReplayable !== undefined).length
  const passed = pages.length - failed - notReplayable
  const updated = flags.update ? first.filter((page) => page.problems.length > 0).length - failed : 0
  if (flags.json) printJson({ scraper: scraper.name, folder, passed, failed, notReplayable, updated, pages })
  else if (!flags.quiet)
    print(await resultText(scraper.name, pages, { failed, notReplayable, updated, isUpdate: flags.update === true }))
  return failed > 0 ? 1 : 0
}

const PROBLEMS_SHOWN_MAX = 10

interface Outcome {
  failed: number
  notReplayable: number
  updated: number
  isUpdate: boolean
}

async function resultText(
  name: string,
  pages: Replayed[],
  { failed, notReplayable, updated, isUpdate }: Outcome,
): Promise<string> {
  const [{ paintFor, plural, printable, table }, { self }] = await Promise.all([
    import('./style.ts'),
    import('../observe/terminal.ts'),
  ])
  const paint = paintFor(process.stdout)
  const heads = table(
    pages.map(({ problems, notReplayable, route, items, links, url }) => [
      notReplayable !== undefined
        ? paint('yellow', '–')
        : problems.length === 0
          ? paint('green', '✔')
          : paint('red', '✘'),
      route,
      plural(items, 'item'),
      plural(links, 'link'),
      paint('dim', printable(url)),
    ]),
    { right: [2, 3] },
  ).split('\n')
  const lines = pages.flatMap(({ problems, notReplayable, file }, i) => {
    if (notReplayable !== undefined) return [heads[i]!, paint('yellow', `    ${printable(notReplayable)}`)]
    const shown = problems.slice(0, PROBLEMS_SHOWN_MAX).map((problem) => `    ${printable(problem)}`)
    if (problems.length > shown.length) shown.push(`    … and ${problems.length - shown.length} more`)
    return [heads[i]!, ...shown, ...(problems.length > 0 ? [paint('dim', `    page ${file}`)] : [])]
  })
  const read = pages.length - notReplayable
  const end =
    failed === 0
      ? paint(
          read === 0 ? 'yellow' : 'green',
          `${plural(read, 'page')} of ${name} read as ${isUpdate ? 'now expected' : 'recorded'}`,
        )
      : paint('red', `${failed} of ${plural(read, 'page')} of ${name} read differently`)
  const notes = [
    ...(notReplayable > 0 ? [paint('yellow', `${plural(notReplayable, 'page')} not replayable`)] : []),
    ...(updated > 0 ? [`${plural(updated, 'page')} updated`] : []),
    ...(failed > 0 && !isUpdate ? [`if that was meant: ${paint('cyan', `${self()} test ${name} --update`)}`] : []),
  ]
  return [...lines, '', end, ...notes].join('\n')
}
