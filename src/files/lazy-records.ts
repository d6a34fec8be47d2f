/**
 * Records that are opened when they are first needed, and again until it works: a database that is away at the first file makes
 * its tasks wait, as one that goes away later does.
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
      opening = undefined // the next who asks tries again; how often is the loop's to say (`Patience`)
      if (error instanceof ScrapeError && error.code === 'E_OUTPUT') throw error // a folder that is no folder stays one
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
