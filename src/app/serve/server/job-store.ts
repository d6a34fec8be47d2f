/** Jobs inside a server: reads postings into them, answers queries, and keeps their statistics fresh. */

import type { SqlDatabase } from '../../../drivers/sql.ts'
import { Analytics } from '../../../jobs/store/analytics.ts'
import { JobsProjection } from '../../../jobs/store/projection.ts'
import { Rollups } from '../../../jobs/store/rollups.ts'
import { ScrapeHealth } from '../../../jobs/store/scrape-health.ts'
import { JobSearch } from '../../../jobs/store/search.ts'

interface JobStoreParts {
  db: SqlDatabase
  /** Only answers queries; another server keeps them fresh. */
  isPassive: boolean
  say: (level: 'info' | 'warn', message: string) => void
}

export class JobStore implements AsyncDisposable {
  readonly projection: JobsProjection
  readonly search: JobSearch
  readonly analytics: Analytics
  readonly health: ScrapeHealth
  /** Undefined if another server maintains them. */
  readonly rollups: Rollups | undefined

  constructor({ db, isPassive, say }: JobStoreParts) {
    this.projection = new JobsProjection(db.dialect)
    this.search = new JobSearch(db)
    this.analytics = new Analytics(db)
    this.health = new ScrapeHealth(db)
    this.rollups = isPassive ? undefined : new Rollups({ db, say })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.rollups?.[Symbol.asyncDispose]()
  }
}
