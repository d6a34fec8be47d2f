/** What employers' boards have in common: the name of a board, the response that says it is gone, and required shapes. */
import { ScrapeError } from 'sluice'
import type { Search } from 'sluice/jobs'
import * as z from 'zod'

/** It becomes part of a path or host name, so nothing that could lead elsewhere is accepted. */
export const boardToken = z
  .string({ error: 'the name of the board is needed, as its address has it: --arg board=NAME' })
  .max(100)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, {
    error: 'not the name of a board: letters, digits, dots, hyphens and underscores, as its address has it',
  })

/** Statuses that mean that there is no such board. A route that accepts them calls `assertBoard`. */
export const GONE_STATUSES = [404, 410, 422]

/** Throws E_NOT_FOUND for a board that does not exist, which is different from an empty board. */
export function assertBoard(status: number, { board, url }: { board: string; url: URL }): void {
  if (!GONE_STATUSES.includes(status)) return
  throw new ScrapeError('E_NOT_FOUND', `no board "${board}" at ${url.host} (status ${status}): check --arg board`, {
    url: url.href,
    status,
    fix: 'Check the name of the board in the address of the careers page; the employer may have moved.',
  })
}

/** `base` may have a path. */
export function under(base: string, path: string): URL {
  return new URL(path, base.endsWith('/') ? base : `${base}/`)
}

/** A field that may be missing, or have an unexpected type. */
export const text = z.string().nullish().catch(null)
export const flag = z.boolean().nullish().catch(null)
export const number = z.number().nullish().catch(null)
export const id = z.union([z.string().min(1), z.number()])
/** An id that becomes part of a URL. */
export const pathId = z.union([z.string().regex(/^[\w-]{1,100}$/), z.number()])
/** A link for users to click: `javascript:` is a URL, too. */
export const httpUrl = z.url({ protocol: /^https?$/ })
/** A part that may be missing or broken as a whole. */
export const part = <T extends z.ZodType>(schema: T) => schema.nullish().catch(null)
/** A list that may be missing; entries that do not fit are omitted. */
export const listOf = <T extends z.ZodType>(schema: T) =>
  z
    .array(z.unknown())
    .nullish()
    .catch(null)
    .transform((entries) =>
      (entries ?? []).flatMap((entry): z.output<T>[] => {
        const read = schema.safeParse(entry)
        return read.success ? [read.data] : []
      }),
    )

/** Parses a response. Throws E_SELECTOR_EMPTY with what is missing: a changed layout must not be mistaken for an empty board. */
export function readAs<T extends z.ZodType>(schema: T, value: unknown, url: URL): z.output<T> {
  const read = schema.safeParse(value)
  if (read.success) return read.data
  const problems = read.error.issues.slice(0, 5).map(({ path, message }) => `${path.join('.') || 'body'}: ${message}`)
  throw new ScrapeError('E_SELECTOR_EMPTY', `the answer has another layout: ${problems.join('; ')} (${url.href})`, {
    url: url.href,
  })
}

/** Throws E_SELECTOR_EMPTY for an empty page before the end that the board states: the page was lost, the list has not ended. */
export function assertFilled(entries: readonly unknown[], page: { offset: number; total: number; url: URL }): void {
  const { offset, total, url } = page
  if (entries.length > 0 || offset >= total) return
  throw new ScrapeError('E_SELECTOR_EMPTY', `an empty page at ${offset} of ${total} postings (${url.href})`, {
    url: url.href,
  })
}

/**
 * Throws E_SELECTOR_EMPTY for a page that starts like another page of its list: some boards repeat pages past their end, forever.
 */
export function assertMoved(first: string, firstBefore: string, url: URL): void {
  if (first === '' || first !== firstBefore) return
  throw new ScrapeError('E_SELECTOR_EMPTY', `the board answers every page with the same postings (${url.href})`, {
    url: url.href,
  })
}

/** The entries with the right shape. The others are emitted unchanged, so that they are counted and kept as invalid items. */
export async function entriesOf<T extends z.ZodType>(
  schema: T,
  entries: readonly unknown[],
  emit: (item: never) => Promise<unknown>,
): Promise<z.output<T>[]> {
  const good: z.output<T>[] = []
  for (const entry of entries) {
    const read = schema.safeParse(entry)
    if (read.success) good.push(read.data)
    else await emit(entry as never)
  }
  return good
}

/** `acme-robotics` → `Acme Robotics`: for boards that do not state the employer's name. */
export function nameOfToken(token: string): string {
  return token
    .split(/[._-]+/)
    .filter(Boolean)
    .map((word) => word[0]!.toUpperCase() + word.slice(1))
    .join(' ')
}

/** Whether some postings may be unwanted: then their number says nothing about how many will be emitted. */
export function isChoosy({ search, location, remote, type, since }: Search): boolean {
  return search !== '' || location !== '' || remote !== undefined || type !== undefined || since !== undefined
}

/**
 * A board with its own search has matched words and locations better than a text comparison can; returns what is left to check.
 */
export const afterSearch = <S extends Search>(search: S): S => ({ ...search, search: '', location: '' })

/** For boards that do not state the employer's name. */
export const companyArg = z.string().min(1).optional().describe('name of the employer; the board does not tell it')

/** Base URL of a board with its own host: `https://BOARD.HOST/`, unless `site` says where it is. */
export function tenantBase({ board, site }: { board: string; site?: string | undefined }, host: string): string {
  return site ?? `https://${board}.${host}/`
}

/** Throws E_NOT_FOUND if a host redirected us elsewhere, which means that it has no such board. */
export function assertStayed(url: URL, { board, base }: { board: string; base: string }): void {
  if (url.host === new URL(base).host) return
  throw new ScrapeError(
    'E_NOT_FOUND',
    `no board "${board}" at ${new URL(base).host} (it leads to ${url.host}): check --arg board`,
    {
      url: base,
      fix: 'Check the name of the board in the address of the careers page; the employer may have moved.',
    },
  )
}

/** Some boards do not distinguish an empty board from a wrong name, so the log mentions it. */
export function warnIfEmpty(count: number, board: string, log: { warn(message: string): void }): void {
  if (count === 0)
    log.warn(`no postings: "${board}" is empty, or there is no such board; this API does not tell them apart`)
}

/**
 * What is still to be visited, one after the other: for a search for N of more postings, when only a posting's own page shows
 * whether it matches. It travels from task to task, since handlers hold no state; so a page that fails for good ends the walk
 * there, which continues when its dead letter is retried.
 */
export const restSchema = z.object({
  /** Number of postings still wanted. */
  left: z.number(),
  /** Part of each task's key: a posting may be on two lists, and the second time must not end the walk. */
  step: z.number().default(0),
  /** URLs of postings on the current list page. */
  jobs: z.array(z.string()).default([]),
  /** Remaining list pages, in the board's own terms. */
  lists: z.array(z.json()).default([]),
})
export type Rest = z.output<typeof restSchema>

/** No employer has more; a longer board is a loop. */
const STEPS_MAX = 100_000

/** The next posting, else the next list page; undefined if nothing is left, or no more are wanted. */
export function nextOf({ left, step, jobs, lists }: Rest): { job?: string; list?: unknown; rest: Rest } | undefined {
  if (left <= 0 || jobs.length + lists.length === 0) return undefined
  if (step >= STEPS_MAX) throw new Error(`the board does not end after ${STEPS_MAX} pages`)
  const [job, ...otherJobs] = jobs
  if (job !== undefined) return { job, rest: { left, step: step + 1, jobs: otherJobs, lists } }
  const [list, ...otherLists] = lists
  return { list, rest: { left, step: step + 1, jobs: [], lists: otherLists } }
}

/** The responses of postings on the same list: all wanted ones concurrently, or one by one as above. */
export function jobTargets(jobs: readonly string[], search: Search): JobTarget[] {
  if (!isChoosy(search) || jobs.length <= search.results)
    return jobs.slice(0, search.results).map((url) => ({ url, data: {} }))
  return walkOn({ left: search.results, step: 0, jobs: [...jobs], lists: [] }, 0)
}

export interface JobTarget {
  url: string
  key?: string
  data: { rest?: Rest }
}

/** The next step of such a walk, after one that emitted this many postings. */
export function walkOn(rest: Rest | undefined, emitted: number): JobTarget[] {
  const next = rest === undefined ? undefined : nextOf({ ...rest, left: rest.left - emitted })
  if (next?.job === undefined) return []
  return [{ url: next.job, key: `${next.job} ${next.rest.step}`, data: { rest: next.rest } }]
}
