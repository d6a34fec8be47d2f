/** The operator's switch: a scraper whose site does not want automated visitors runs only for who has turned it on. */
import { ScrapeError } from '../../core/errors.ts'
import type { Scraper } from '../../core/scraper.ts'
import type { Config } from '../config.ts'

/** True for scrapers that have no switch, too. */
export function isTurnedOn(
  { name, optIn }: Pick<Scraper, 'name' | 'optIn'>,
  { values }: Pick<Config, 'values'>,
): boolean {
  return optIn === undefined || values.boards.some((names) => names.split(',').includes(name))
}

/** Before anything is fetched, queued or written. Throws E_OPT_IN with what the site says and what to write where. */
export function assertTurnedOn(scraper: Pick<Scraper, 'name' | 'optIn'>, config: Pick<Config, 'values'>): void {
  if (isTurnedOn(scraper, config)) return
  const { name, optIn } = scraper
  throw new ScrapeError('E_OPT_IN', `"${name}" is off until you turn it on`, {
    notes: [`why: ${optIn}`],
    fix: `If you may and want to: --boards ${name}, SLUICE_BOARDS=${name}, or \`boards: ['${name}']\` in sluice.config.ts.`,
  })
}
