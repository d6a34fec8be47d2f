/** Opt-in: a scraper whose site does not want automated visitors runs only if the operator has turned it on. */
import { didYouMean } from '../core/did-you-mean.ts'
import { ScrapeError } from '../core/errors.ts'
import type { Scraper } from '../core/scraper.ts'
import type { Config } from './config.ts'
import { listScrapers } from './load-scraper.ts'

/** Also true for scrapers that need no opt-in. */
export function isTurnedOn(
  { name, optIn }: Pick<Scraper, 'name' | 'optIn'>,
  { values }: Pick<Config, 'values'>,
): boolean {
  return optIn === undefined || boardsOf(values).includes(name)
}

const boardsOf = ({ boards }: Config['values']) => boards.flatMap((names) => names.split(','))

/** A sentence for each unknown name in `boards`. A warning, not an error: workers of a fleet may lack some scrapers. */
export function unknownBoards({ name: own }: Pick<Scraper, 'name'>, { values }: Pick<Config, 'values'>): string[] {
  const names = boardsOf(values).filter((name) => name !== '' && name !== own)
  if (names.length === 0) return []
  const known = listScrapers().map(({ name }) => name)
  return names
    .filter((name) => !known.includes(name))
    .map((name) => {
      const near = didYouMean(name, known)
      return `boards: there is no scraper "${name}"${near === undefined ? '' : `; did you mean ${near}?`}`
    })
}

/** Call it before anything is fetched, queued or written. Throws E_OPT_IN with what the site says and how to turn it on. */
export function assertTurnedOn(scraper: Pick<Scraper, 'name' | 'optIn'>, config: Pick<Config, 'values'>): void {
  if (isTurnedOn(scraper, config)) return
  const { name, optIn } = scraper
  throw new ScrapeError('E_OPT_IN', `"${name}" is off until you turn it on`, {
    notes: [`why: ${optIn}`, ...unknownBoards(scraper, config)],
    fix: `If you may and want to: --boards ${name}, SLUICE_BOARDS=${name}, or \`boards: ['${name}']\` in sluice.config.ts.`,
  })
}
