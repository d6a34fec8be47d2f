/** What employers' boards have in common: the name of a board, the answer that says it is gone, and shapes that must hold. */
import { ScrapeError } from 'sluice'
import type { Search } from 'sluice/jobs'
import * as z from 'zod'

/** It becomes a part of a path or of a host name, so nothing that could lead elsewhere is let in. */
export const boardToken = z
  .string({ error: 'the name of the board is needed, as its address has it: --arg board=NAME' })
  .max(100)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, {
    error: 'not the name of a board: letters, digits, dots, hyphens and underscores, as its address has it',
  })

/** Statuses that say there is no such board. A route that accepts them calls `assertBoard`. */
export const GONE_STATUSES = [404, 410, 422]

/** Throws E_NOT_FOUND for a board that does not exist: no board is not an empty board. */
export function assertBoard(status: number, { board, url }: { board: string; url: URL }): void {
  if (!GONE_STATUSES.includes(status)) return
  throw new ScrapeError('E_NOT_FOUND', `no board "${board}" at ${url.host} (status ${status}): check --arg board`, {
    url: url.href,
    status,
    fix: 'Check the name of the board in the address of the careers page; the employer may have moved.',
  })
}

/** `base` may have a path of its own. */
export function under(base: string, path: string): URL {
  return new URL(path, base.endsWith('/') ? base : `${base}/`)
}

/** A field that may be missing, or be something else than it used to be. */
export const text = z.string().nullish().catch(null)
export const flag = z.boolean().nullish().catch(null)
export const number = z.number().nullish().catch(null)
export const id = z.union([z.string().min(1), z.number()])
/** An id that becomes part of an address. */
export const pathId = z.union([z.string().regex(/^[\w-]{1,100}$/), z.number()])
/** What people will click on: `javascript:` is a URL, too. */
export const httpUrl = z.url({ protocol: /^https?$/ })
/** A part that may be missing or broken, as a whole. */
export const part = <T extends z.ZodType>(schema: T) => schema.nullish().catch(null)
/** A list that may be missing; entries that do not fit are left out. */
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

/** The answer as it must be. Throws E_SELECTOR_EMPTY with what is missing: a changed layout must not pass for an empty board. */
export function readAs<T extends z.ZodType>(schema: T, value: unknown, url: URL): z.output<T> {
  const read = schema.safeParse(value)
  if (read.success) return read.data
  const problems = read.error.issues.slice(0, 5).map(({ path, message }) => `${path.join('.') || 'body'}: ${message}`)
  throw new ScrapeError('E_SELECTOR_EMPTY', `the answer has another layout: ${problems.join('; ')} (${url.href})`, {
    url: url.href,
  })
}

/** Throws E_SELECTOR_EMPTY for a page with nothing on it before the end the board names: that page was lost, the list has not ended. */
export function assertFilled(entries: readonly unknown[], page: { offset: number; total: number; url: URL }): void {
  const { offset, total, url } = page
  if (entries.length > 0 || offset >= total) return
  throw new ScrapeError('E_SELECTOR_EMPTY', `an empty page at ${offset} of ${total} postings (${url.href})`, {
    url: url.href,
  })
}

/** Throws E_SELECTOR_EMPTY for a page that starts as another page of its list did: some boards answer so past their end, for ever. */
export function assertMoved(first: string, firstBefore: string, url: URL): void {
  if (first === '' || first !== firstBefore) return
  throw new ScrapeError('E_SELECTOR_EMPTY', `the board answers every page with the same postings (${url.href})`, {
    url: url.href,
  })
}

/** The entries that have their shape. The others are emitted as they are: that counts and keeps them as invalid items. */
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

/** `acme-robotics` → `Acme Robotics`: for boards that do not tell the employer's name. */
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

/** A board that is searched has judged words and places itself, better than a comparison of words can: what is left to check. */
export const afterSearch = <S extends Search>(search: S): S => ({ ...search, search: '', location: '' })

/** For boards that do not tell the employer's name. */
export const companyArg = z.string().min(1).optional().describe('name of the employer; the board does not tell it')

/** Base address of a board that has a host of its own: `https://BOARD.HOST/`, unless `site` says where it is. */
export function tenantBase({ board, site }: { board: string; site?: string | undefined }, host: string): string {
  return site ?? `https://${board}.${host}/`
}

/** Throws E_NOT_FOUND where a host sent us elsewhere: that is how it says that it has no such board. */
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

/** Some boards know no difference between an empty board and a wrong name: who reads the log shall. */
export function warnIfEmpty(count: number, board: string, log: { warn(message: string): void }): void {
  if (count === 0)
    log.warn(`no postings: "${board}" is empty, or there is no such board; this API does not tell them apart`)
}

/**
 * What is still to be looked at, one after the other: for whoever wants N postings of more, when only a posting's own page
 * tells whether it is wanted. It travels from task to task, as handlers hold no state; so a page that fails for good ends the
 * walk there, and goes on with it when its dead letter is tried again.
 */
export const restSchema = z.object({
  /** Postings still wanted. */
  left: z.number(),
  /** Part of each task's key: a posting may stand on two lists, and the second time must not end the walk. */
  step: z.number().default(0),
  /** Addresses of postings on the list page at hand. */
  jobs: z.array(z.string()).default([]),
  /** List pages after it, in the board's own terms. */
  lists: z.array(z.json()).default([]),
})
export type Rest = z.output<typeof restSchema>

/** No employer has more; a board that goes on is going round in circles. */
const STEPS_MAX = 100_000

/** The next posting, else the next list page; undefined when nothing is left, or nothing more wanted. */
export function nextOf({ left, step, jobs, lists }: Rest): { job?: string; list?: unknown; rest: Rest } | undefined {
  if (left <= 0 || jobs.length + lists.length === 0) return undefined
  if (step >= STEPS_MAX) throw new Error(`the board does not end after ${STEPS_MAX} pages`)
  const [job, ...otherJobs] = jobs
  if (job !== undefined) return { job, rest: { left, step: step + 1, jobs: otherJobs, lists } }
  const [list, ...otherLists] = lists
  return { list, rest: { left, step: step + 1, jobs: [], lists: otherLists } }
}

/** The answers of postings that all stand on one list: all that are wanted side by side, or one by one as above. */
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

/** The next one of such a walk, after one that gave so many postings. */
export function walkOn(rest: Rest | undefined, emitted: number): JobTarget[] {
  const next = rest === undefined ? undefined : nextOf({ ...rest, left: rest.left - emitted })
  if (next?.job === undefined) return []
  return [{ url: next.job, key: `${next.job} ${next.rest.step}`, data: { rest: next.rest } }]
}
