/** Where the records of a run's files are: in its folder, or beside the runs of a fleet. */
import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { FileRecord, FileRecords } from '../../files/contract.ts'
import { isPostgres } from '../fleet/fleet.ts'

/** `postgres://…`, or the path of a file. */
export function recordsBeside(storeUrl: string): string {
  return isPostgres(storeUrl) ? storeUrl : join(dirname(resolve(storeUrl.replace(/^sqlite:(?:\/\/)?/, ''))), 'files.db')
}

export async function openFileRecords(place: string): Promise<FileRecords> {
  if (isPostgres(place)) return await (await import('../../files/postgres-records.ts')).openPostgresRecords(place)
  return (await import('../../files/records.ts')).openSqliteRecords(place)
}

const READ_MAX = 500

/** Some hundred at a time; nothing where no file was ever recorded. */
export async function* listFiles(place: string, runId: string): AsyncGenerator<readonly FileRecord[]> {
  if (!isPostgres(place) && !existsSync(place)) return
  await using records = await openFileRecords(place)
  for (let after = ''; ; ) {
    const found = await records.list(runId, { after, limit: READ_MAX })
    if (found.length > 0) yield found
    if (found.length < READ_MAX) return
    after = found.at(-1)!.taskId
  }
}
