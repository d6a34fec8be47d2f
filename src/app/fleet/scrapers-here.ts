/** The scrapers a multi-run worker may use: the named ones, or all that are known here. Each is loaded once. */

import type { Config } from '../../config/config.ts'
import { type LoadedScraper, listScrapers, loadScraper } from '../../config/load-scraper.ts'
import { assertTurnedOn } from '../../config/opt-in.ts'
import { ScrapeError } from '../../core/errors.ts'
import type { StoredRun, WorkPart } from '../../store/contract.ts'
import { assertCanBrowse } from '../run/open-browsers.ts'
import { definitionHash } from './definition-hash.ts'
import { refuseOtherScraper } from './start-distributed.ts'

export interface ScrapersOptions {
  config: Config
  /** As the user names them; empty: every scraper known here. */
  scrapers: readonly string[]
  only: WorkPart | undefined
  say: (message: string) => void
}

export class ScrapersHere {
  readonly #options: ScrapersOptions
  readonly #loaded = new Map<string, { loaded: LoadedScraper; hash: string }>()
  /** The named scrapers, keyed by the names they give themselves. */
  #named: ReadonlyMap<string, string> | undefined

  constructor(options: ScrapersOptions) {
    this.#options = options
  }

  /** Loads the named scrapers. Reports those that cannot be used and serves the others; throws if there are no others. */
  async open(): Promise<void> {
    const { scrapers, say } = this.#options
    if (scrapers.length === 0) return
    const named = new Map<string, string>()
    let failure: unknown
    for (const word of scrapers) {
      try {
        named.set((await this.#load(word)).scraper.name, word)
      } catch (error) {
        failure = error
        if (scrapers.length > 1) say(`"${word}" is skipped: ${(error as Error).message}`)
      }
    }
    if (named.size === 0) throw failure
    this.#named = named
  }

  isMeant({ record: { scraper } }: StoredRun): boolean {
    return this.#named === undefined || this.#named.has(scraper)
  }

  /** The scraper of a run. Throws if it cannot be used here or differs from the run's. */
  async of(run: StoredRun): Promise<LoadedScraper> {
    const loaded = await this.#load(this.#wordOf(run))
    refuseOtherScraper(run, loaded)
    return loaded
  }

  /** A path on the machine that started the run means nothing here; only known names do. */
  #wordOf({ record: { scraper, source } }: StoredRun): string {
    const named = this.#named?.get(scraper)
    if (named !== undefined) return named
    const known = new Set(listScrapers().map(({ name }) => name))
    return known.has(source) ? source : scraper
  }

  /** A loaded module never changes, so a file edited since would be mistaken for the code that runs here. */
  async #load(word: string): Promise<LoadedScraper> {
    const known = this.#loaded.get(word)
    const { loaded, hash } = known ?? (await this.#loadFirst(word))
    if (definitionHash(loaded.file) !== hash)
      throw new ScrapeError('E_DEFINITION_DIFFERS', `"${word}" was changed since this worker loaded it`, {
        at: loaded.file,
        fix: 'Restart the worker.',
      })
    assertTurnedOn(loaded.scraper, this.#options.config)
    if (this.#options.only !== 'files') await assertCanBrowse(loaded.scraper, this.#options.config.values.chrome)
    return loaded
  }

  async #loadFirst(word: string): Promise<{ loaded: LoadedScraper; hash: string }> {
    const loaded = await loadScraper(word)
    const first = { loaded, hash: definitionHash(loaded.file) }
    this.#loaded.set(word, first)
    return first
  }
}
