/** `sluice init`: a folder to write scrapers in. */
import type { Command } from 'commander'

interface InitFlags {
  quiet?: boolean
}

const HELP = `
Needs no network, and overwrites nothing.

Examples:
  sluice init my-scrapers
  cd my-scrapers && sluice run example --pages 3`

export function defineInit(program: Command): void {
  program
    .command('init [folder]')
    .description('make a new project: an example scraper, options, types for the editor')
    .option('--quiet', 'print nothing but errors')
    .option('-v, --verbose', 'show stacks of errors')
    .addHelpText('after', HELP)
    .action(async (folder: string | undefined, flags: InitFlags) => {
      await init(folder ?? '.', flags)
    })
}

async function init(folder: string, flags: InitFlags): Promise<void> {
  const [{ INSTALLATION, templateFiles, writeNewFiles }, { paintFor }, { self }, { print, shellWord }] =
    await Promise.all([
      import('../app/author/templates.ts'),
      import('./style.ts'),
      import('../observe/terminal.ts'),
      import('./output.ts'),
    ])
  const files = templateFiles('project', { ROOT: INSTALLATION })
  writeNewFiles(folder, files)
  if (flags.quiet) return
  const paint = paintFor(process.stdout)
  const go = folder === '.' ? '' : `cd ${shellWord(folder)} && `
  print(
    [
      `made ${files.size} files in ${folder === '.' ? 'this folder' : folder}:`,
      ...[...files.keys()].map((path) => `  ${path}`),
      'next:',
      `  ${paint('cyan', `${go}${self()} run example --pages 3`)}`,
      `  ${paint('cyan', `${go}${self()} new NAME https://…/`)}`,
    ].join('\n'),
  )
}
