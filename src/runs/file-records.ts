/** Where the records of a run's files are: in its folder, or alongside the runs of a fleet. */

import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseEngineUrl } from '../core/engine-url.ts'
import { skippedTasks } from '../core/not-fetched.ts'
import type { FileCounts } from '../core/run.ts'
import { isFileLane } from '../core/task.ts'
import type { FileRecord, FileRecords } from '../files/contract.ts'
import type { Frontier } from '../frontier/contract.ts'

/** `postgres://…`, or the path of a file. */
export function recordsBeside(storeUrl: string): string {
  const { engine, path, url } = parseEngineUrl(storeUrl)
  return engine === 'postgres' ? url : join(dirname(resolve(path ?? storeUrl)), 'files.db')
}

const isPostgres = (place: string) => parseEngineUrl(place).engine === 'postgres'

export async function openFileRecords(place: string): Promise<FileRecords> {
  if (isPostgres(place)) return await (await import('../files/postgres-records.ts')).openPostgresRecords(place)
  return (await import('../files/records.ts')).openSqliteRecords(place)
}

/**
 * The confirmed figures about a run's files: their records, and the dead letters. What workers count is lost with them; this is
 * not. Undefined if no file was ever recorded and none died.
 */
export async function countFiles(
  place: string,
  runId: string,
  frontier: Pick<Frontier, 'dead'>,
): Promise<Omit<FileCounts, 'retried'> | undefined> {
  const failed = await countDeadFiles(frontier)
  if (!isPostgres(place) && !existsSync(place)) return failed === 0 ? undefined : { ...NONE, failed }
  await using records = await openFileRecords(place)
  const { stored, same, bytes } = await records.count(runId)
  return stored + same + failed === 0 ? undefined : { stored, same, recorded: stored + same, bytes, failed }
}

/** Counts settled pages: the frontier counts tasks, and a recorded file counts as two. */
export async function countPages(
  place: string,
  runId: string,
  frontier: Pick<Frontier, 'dead' | 'stats'>,
): Promise<number> {
  const { completed, failed, counts } = await frontier.stats()
  const files = completed + failed === 0 ? undefined : await countFiles(place, runId, frontier)
  return (
    completed +
    failed -
    skippedTasks(counts) -
    (files === undefined ? 0 : files.stored + files.same + files.recorded + files.failed)
  )
}

const NONE = { stored: 0, same: 0, recorded: 0, bytes: 0 }
/** Maximum number of dead letters searched for files. */
const LETTERS_MAX = 100_000

async function countDeadFiles({ dead }: Pick<Frontier, 'dead'>): Promise<number> {
  let count = 0
  let after: string | undefined
  for (let seen = 0; seen < LETTERS_MAX; ) {
    const letters = await dead.list({ limit: READ_MAX, after })
    count += letters.filter(({ task }) => isFileLane(task.lane)).length
    seen += letters.length
    after = letters.at(-1)?.task.id
    if (letters.length < READ_MAX) break
  }
  return count
}

const READ_MAX = 500

/** A few hundred at a time; nothing if no file was ever recorded. */
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
