/** Where the streams of the task protocol are. */

import type { ConfigValues } from '../../config/option-table.ts'
import { ScrapeError } from '../../core/errors.ts'
import { redisUrlOf } from '../../runs/run-identity.ts'

/** The queue if it is a `redis://` URL, else the Redis configured alongside another queue. */
export function protocolRedis(values: Pick<ConfigValues, 'frontier' | 'redis'>): string {
  const url = /^rediss?:\/\//.test(values.frontier) ? values.frontier : redisUrlOf(values)
  if (url !== undefined) return url
  throw new ScrapeError('E_OPTION', 'the task protocol needs a Redis URL', {
    fix: 'Name it with --frontier redis://HOST:PORT/NUMBER, --redis, or SLUICE_REDIS.',
  })
}
