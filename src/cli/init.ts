/** `sluice init`: creates a project folder for scrapers. */
import type { Command } from 'commander'
import { PROJECTS } from '../app/tools/templates.ts'

interface InitFlags {
  template: string
  quiet?: boolean
}

const HELP = `
Templates:
${Object.entries(PROJECTS)
  .map(([name, what]) => `  ${name.padEnd(12)} ${what}`)
  .join('\n')}

Needs no network and overwrites nothing: in a folder that already has files, it adds what is missing.

Examples:
  sluice init && sluice run
  sluice init my-fleet --template distributed`

export function defineInit(program: Command): void {
  program
    .command('init [folder]')
    .description('create a project: an example scraper, options, types for the editor')
    .option('--template <NAME>', Object.keys(PROJECTS).join(', '), 'basic')
    .option('--quiet', 'print only errors')
    .option('-v, --verbose', 'print stack traces')
    .addHelpText('after', HELP)
    .action(async (folder: string | undefined, flags: InitFlags) => {
      await init(folder ?? '.', flags)
    })
}

async function init(folder: string, flags: InitFlags): Promise<void> {
  const [{ projectFiles, writeNewFiles }, { ScrapeError }, { existsSync }, { resolve }] = await Promise.all([
    import('../app/tools/templates.ts'),
    import('../core/errors.ts'),
    import('node:fs'),
    import('node:path'),
  ])
  if (!Object.hasOwn(PROJECTS, flags.template))
    throw new ScrapeError('E_USAGE', `there is no template ${JSON.stringify(flags.template)}`, {
      notes: [`templates: ${Object.keys(PROJECTS).join(', ')}`],
      fix: 'sluice init --help',
    })
  const files = [...projectFiles(flags.template, folder)]
  const kept = files.map(([path]) => path).filter((path) => existsSync(resolve(folder, path)))
  const made = new Map(files.filter(([path]) => !kept.includes(path)))
  writeNewFiles(folder, made)
  if (!flags.quiet) await report({ folder, template: flags.template, made: [...made.keys()], kept })
}

interface Made {
  folder: string
  template: string
  made: readonly string[]
  kept: readonly string[]
}

async function report({ folder, template, made, kept }: Made): Promise<void> {
  const [{ PROJECT_PACKAGES }, { installCommand, isInstalled }, { paintFor, plural }, { self }, { print, shellWord }] =
    await Promise.all([
      import('../app/tools/templates.ts'),
      import('../core/optional-package.ts'),
      import('./style.ts'),
      import('../observe/terminal.ts'),
      import('./output.ts'),
    ])
  const paint = paintFor(process.stdout)
  const go = folder === '.' ? '' : `cd ${shellWord(folder)} && `
  const isFleet = template === 'distributed'
  const next = isFleet ? ['demo', 'start shop'] : ['run', 'new NAME https://…/']
  const absent = (PROJECT_PACKAGES[template] ?? []).filter((name) => !isInstalled(name))
  const place = folder === '.' ? 'this folder' : folder
  print(
    [
      made.length === 0
        ? `${place} has all its files already: nothing was changed`
        : `made ${plural(made.length, 'file')} in ${place}:`,
      ...made.map((path) => `  ${path}`),
      ...(kept.length > 0 && made.length > 0
        ? [`kept as it is: ${plural(kept.length, 'file')} that ${kept.length === 1 ? 'was' : 'were'} there`]
        : []),
      'next:',
      ...(absent.length > 0 ? [`  ${paint('cyan', installCommand(absent))}`] : []),
      ...(isFleet ? [`  ${paint('cyan', 'export SLUICE_FRONTIER=postgres://USER:PASSWORD@HOST/DATABASE')}`] : []),
      ...next.map((command) => `  ${paint('cyan', `${go}${self()} ${command}`)}`),
    ].join('\n'),
  )
}
