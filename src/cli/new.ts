/** `sluice new`: a scraper for a site, with initial selectors guessed if the site can be fetched. */
import type { Command } from 'commander'
import type { ListGuess, PageGuess } from '../app/tools/guess-selectors.ts'
import type { OptionName } from '../config/option-table.ts'
import { addOptions, configOf } from './flags.ts'
import { note } from './output.ts'

const OPTIONS: OptionName[] = ['timeout', 'robots', 'contact', 'userAgent', 'allowPrivate', 'allowAddress']

interface NewFlags {
  offline?: boolean
  quiet?: boolean
}

const HELP = `
Fetches the URL and one page it links to (two requests, robots.txt obeyed), and guesses selectors for links, title and
price. Without a network you get the same file with placeholder selectors.

Examples:
  sluice new shop https://shop.example/
  sluice run shop --pages 5`

export function defineNew(program: Command): void {
  const command = program
    .command('new <name> <url>')
    .description('create a scraper in ./scrapers')
    .option('--offline', 'do not fetch the site')
    .option('--quiet', 'print only errors')
    .option('-v, --verbose', 'print stack traces')
    .addHelpText('after', HELP)
    .action(async (name: string, url: string, flags: NewFlags) => {
      await create(name, url, flags)
    })
  addOptions(command, OPTIONS)
}

const NAME = /^[a-z0-9][a-z0-9-]{0,63}$/

async function create(name: string, given: string, flags: NewFlags): Promise<void> {
  const [{ urlArgument }, { fillTemplate, readTemplate, writeNewFiles }, { ScrapeError }, { existsSync }] =
    await Promise.all([
      import('../app/tools/one-page.ts'),
      import('../app/tools/templates.ts'),
      import('../core/errors.ts'),
      import('node:fs'),
    ])
  if (!NAME.test(name))
    throw new ScrapeError('E_USAGE', `${JSON.stringify(name)} cannot name a scraper`, {
      fix: 'Use lower-case letters, digits and hyphens, at most 64: sluice new my-shop https://…/',
    })
  const url = urlArgument(given)
  if (existsSync(`scrapers/${name}.ts`))
    throw new ScrapeError('E_USAGE', `there is a scraper "${name}" already`, {
      notes: [`scrapers/${name}.ts`],
      fix: 'Choose another name.',
    })
  const guess = flags.offline ? undefined : await look(url, flags)
  const { BLIND } = await import('../app/tools/guess-selectors.ts')
  const { links, next, listMatch, pageMatch, title, description, price } = guess ?? BLIND
  const code = fillTemplate(readTemplate(links === undefined ? 'scraper/page.ts' : 'scraper/list.ts'), {
    NAME: name,
    HOST: new URL(url).host,
    SITE: url.replaceAll("'", '%27'),
    LINKS: links,
    NEXT: next,
    LIST: routeCode(listMatch),
    PAGE: routeCode(pageMatch),
    TITLE: title,
    DESCRIPTION: description,
    PRICE: price,
  })
  const file = `scrapers/${name}/${name}.ts`
  writeNewFiles('.', new Map([[file, code]]))
  if (!flags.quiet) await report(file, name, guess)
}

const routeCode = (match: string | undefined) => (match === undefined ? '{}' : `{ match: '${match}' }`)

/** Undefined if the site cannot be fetched; reported on standard error, since the file is created anyway. */
async function look(url: string, flags: NewFlags): Promise<(ListGuess & PageGuess) | undefined> {
  const [one, { guessList, guessPage }] = await Promise.all([
    import('../app/tools/one-page.ts'),
    import('../app/tools/guess-selectors.ts'),
  ])
  const config = await configOf({ timeout: '10s', ...(flags as Record<string, unknown>) })
  const limits = one.unhurriedLimits(one.limitsOf(config.limits), config.limits)
  await using chain = await one.openOnePage({ config, limits, typed: [url] })
  const first = await chain.visit({ url })
  if (first.page === undefined || first.error !== undefined) {
    const why = first.error === undefined ? 'no page' : `${first.error.code}: ${first.error.message}`
    if (!flags.quiet) note(`${url} could not be fetched (${why}); the selectors are only a starting point`)
    return undefined
  }
  const list = guessList(first.page)
  const second = list.example === undefined ? undefined : await chain.visit({ url: list.example })
  const example = second?.error === undefined ? second?.page : undefined
  return { ...list, ...guessPage(example ?? first.page) }
}

async function report(file: string, name: string, guess: (ListGuess & PageGuess) | undefined): Promise<void> {
  const [{ paintFor }, { self }, { print }] = await Promise.all([
    import('./style.ts'),
    import('../observe/terminal.ts'),
    import('./output.ts'),
  ])
  const paint = paintFor(process.stdout)
  const { links, next, title, description, price } = guess ?? {}
  const guessed = Object.entries({ links, next, title, description, price }).filter(([, css]) => css !== undefined)
  print(
    [
      `made ${paint('bold', file)}`,
      ...(guessed.length > 0
        ? [`guessed: ${guessed.map(([what, css]) => `${what} ${paint('cyan', css!)}`).join(' · ')}`]
        : []),
      'next:',
      ...(guess?.example === undefined
        ? []
        : [`  ${paint('cyan', `${self()} try ${name} '${guess.example.replaceAll("'", '%27')}'`)}`]),
      `  ${paint('cyan', `${self()} run ${name} --pages 5`)}`,
    ].join('\n'),
  )
}
