/**
 * Records that are opened on first use, and retried until that works: if the database is down at the first file, its tasks wait,
 * as they do when it goes down later.
 */
import { ScrapeError } from '../core/errors.ts'
import type { FileRecords } from './contract.ts'

export function lazyRecords(open: () => Promise<FileRecords>): FileRecords {
  let opening: Promise<FileRecords> | undefined
  const opened = async (): Promise<FileRecords> => {
    opening ??= open()
    try {
      return await opening
    } catch (error) {
      opening = undefined // the next call tries again; the loop limits how often (`ServiceBackoff`)
      if (error instanceof ScrapeError && error.code === 'E_OUTPUT') throw error // an invalid folder stays invalid
      throw new ScrapeError('E_FILE_RECORD', (error as Error).message ?? String(error), { cause: error })
    }
  }
  return {
    put: async (records) => await (await opened()).put(records),
    findStored: async (sha256, place) => await (await opened()).findStored(sha256, place),
    count: async (runId) => await (await opened()).count(runId),
    list: async (runId, options) => await (await opened()).list(runId, options),
    async [Symbol.asyncDispose]() {
      const records = await opening?.catch(() => undefined)
      await records?.[Symbol.asyncDispose]()
    },
  }
}
