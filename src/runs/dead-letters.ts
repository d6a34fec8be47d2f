/** Dead letters of a run as a user handles them: found by a short name or a filter, and retried. */
import { ScrapeError } from '../core/errors.ts'
import { MASK, redactText } from '../core/redact-text.ts'
import type { DeadFilter, DeadLetter, Frontier } from '../frontier/contract.ts'
import { frontierOf, type OpenRun } from './run-view.ts'

const PAGE = 500
const LISTED_MAX = 10

/** All letters that match the filter, read in pages so that a million of them are never in memory together. */
export async function* deadLetters(frontier: Frontier, filter: DeadFilter = {}): AsyncGenerator<DeadLetter> {
  let after: string | undefined
  for (;;) {
    const letters = await frontier.dead.list({ ...filter, limit: PAGE, after })
    yield* letters
    if (letters.length < PAGE) return
    after = letters.at(-1)!.task.id
  }
}

/** Found by URL, also as it is displayed, or by the first characters of its id. Throws unless exactly one matches. */
export async function findLetter(frontier: Frontier, word: string): Promise<DeadLetter> {
  const isUrl = /^[a-z]+:\/\//i.test(word)
  const isShown = isUrl && word.includes(MASK)
  const found: DeadLetter[] = []
  for await (const letter of deadLetters(frontier)) {
    const { id, url } = letter.task
    if (isUrl && url === word) return letter
    const isMeant = isUrl ? isShown && redactText(url) === word : id.startsWith(word.toLowerCase())
    if (isMeant) found.push(letter)
    if (found.length === LISTED_MAX) break
  }
  const [letter, other] = found
  if (letter === undefined)
    throw new ScrapeError('E_USAGE', `no dead letter ${JSON.stringify(word)} in this run`, {
      fix: 'Give the id (or its first characters) or the URL that `sluice dlq list` shows.',
    })
  if (other !== undefined)
    throw new ScrapeError(
      'E_USAGE',
      `more than one dead letter ${isUrl ? 'is shown as' : 'begins with'} ${JSON.stringify(word)}`,
      {
        notes: found.map(({ task }) => `${task.id.slice(0, 16)}  ${task.url}`),
        fix: isUrl ? 'Give the id of one of them.' : 'Give more characters of the id.',
      },
    )
  return letter
}

/** Returns letters to pending with fresh tries. A run that has ended has work again and is reopened. */
export async function retryLetters(run: OpenRun, filter: DeadFilter): Promise<number> {
  const count = await frontierOf(run).dead.retry(filter)
  if (count === 0 || (run.isAlive && !run.isOver)) return count // its workers pick them up
  await run.reopen(`${count} dead letter${count === 1 ? '' : 's'} put back, to be tried again`)
  return count
}

export async function dropLetters(run: OpenRun, filter: DeadFilter): Promise<number> {
  const frontier = frontierOf(run)
  const count = await frontier.dead.drop(filter)
  if (count > 0 && !run.isAlive) {
    const { dead } = await frontier.stats()
    await run.saveRecord({ ...run.record, pages: { ...run.record.pages, dead } })
  }
  return count
}
