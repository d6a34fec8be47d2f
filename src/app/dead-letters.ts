/** Dead letters of a run as a person handles them: one by a short name, many by a filter, and back to work. */
import { closeSync, openSync, readSync } from 'node:fs'
import { ScrapeError } from '../core/errors.ts'
import type { DeadFilter, DeadLetter, Frontier } from '../frontier/contract.ts'
import { frontierOf, type OpenRun } from './open-run.ts'

const PAGE = 500

/** Every letter the filter takes, in pages: a million of them never stand in memory together. */
export async function* deadLetters(frontier: Frontier, filter: DeadFilter = {}): AsyncGenerator<DeadLetter> {
  let after: string | undefined
  for (;;) {
    const letters = await frontier.dead.list({ ...filter, limit: PAGE, ...(after === undefined ? {} : { after }) })
    yield* letters
    if (letters.length < PAGE) return
    after = letters.at(-1)!.task.id
  }
}

/** By URL or by the first characters of its id. Throws when none, or more than one, is meant. */
export async function findLetter(frontier: Frontier, word: string): Promise<DeadLetter> {
  const isUrl = /^[a-z]+:\/\//i.test(word)
  const found: DeadLetter[] = []
  for await (const letter of deadLetters(frontier)) {
    if (isUrl ? letter.task.url === word : letter.task.id.startsWith(word.toLowerCase())) found.push(letter)
    if (found.length > 1) break
  }
  const [letter, other] = found
  if (letter === undefined)
    throw new ScrapeError('E_USAGE', `no dead letter ${JSON.stringify(word)} in this run`, {
      fix: 'Give the id (or its first characters) or the URL that `sluice dlq list` shows.',
    })
  if (other !== undefined && !isUrl)
    throw new ScrapeError('E_USAGE', `more than one dead letter begins with ${JSON.stringify(word)}`, {
      notes: found.map(({ task }) => `${task.id.slice(0, 16)}  ${task.url}`),
      fix: 'Give more characters of the id.',
    })
  return letter
}

/** Back to pending with fresh tries. A run that has ended is marked as stopped, so that `--resume` finds it. */
export async function retryLetters(run: OpenRun, filter: DeadFilter): Promise<number> {
  const frontier = frontierOf(run)
  const count = await frontier.dead.retry(filter)
  if (count === 0 || run.isAlive) return count // a working run picks them up by itself
  const stats = await frontier.stats()
  const { failed, remaining, dead } = stats
  run.folder.writeRecord({
    ...run.record,
    state: 'stopped',
    reason: `${count} dead letter${count === 1 ? '' : 's'} put back, to be tried again`,
    exitCode: 4,
    pages: { ...run.record.pages, failed, remaining, dead },
  })
  return count
}

export async function dropLetters(run: OpenRun, filter: DeadFilter): Promise<number> {
  const frontier = frontierOf(run)
  const count = await frontier.dead.drop(filter)
  if (count > 0 && !run.isAlive) {
    const { dead } = await frontier.stats()
    run.folder.writeRecord({ ...run.record, pages: { ...run.record.pages, dead } })
  }
  return count
}

const HEAD_BYTES = 16 * 1024

/** The beginning of what came back, as text. Undefined when it was not kept. */
export function snapshotHead(run: OpenRun, snapshot: string | undefined): string | undefined {
  if (snapshot === undefined) return undefined
  let file: number
  try {
    file = openSync(run.folder.file(snapshot), 'r')
  } catch {
    return undefined
  }
  try {
    const buffer = Buffer.alloc(HEAD_BYTES)
    return buffer.subarray(0, readSync(file, buffer, 0, HEAD_BYTES, 0)).toString('utf8')
  } finally {
    closeSync(file)
  }
}
