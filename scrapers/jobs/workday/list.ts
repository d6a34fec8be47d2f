/**
 * Lists of Workday: pages of 20, and at most 2000 postings per list, however many there are. A longer list is split by a facet
 * ("all of one job family"), and its parts again, until each is short enough.
 */
import * as z from 'zod'
import { listOf, number, type Rest } from '../shared.ts'

export const PAGE_SIZE = 20
/** A total of exactly this means "at least"; pages beyond repeat the first one. */
export const TOTAL_MAX = 2000
/** In this order, each once: a list is split at most four times. */
const SPLIT_BY = ['jobFamilyGroup', 'timeType', 'locations', 'workerSubType']
/** Maximum number of lists from one; parts get their share by size, so wrong facets cannot make it endless. */
export const PARTS_MAX = 20_000
/** A posting may have several of these, so their counts may add up to more than the total. */
const MANY_VALUED = 'locations'

export const bodySchema = z.object({
  appliedFacets: z.record(z.string(), z.array(z.string())),
  limit: z.number(),
  offset: z.number(),
  searchText: z.string(),
})
export type ListBody = z.output<typeof bodySchema>
type Facets = ListBody['appliedFacets']

const Value = z.object({ id: z.string().min(1), count: number })
const Facet = z.object({ facetParameter: z.string(), values: listOf(Value) })
/** Locations are often inside a group of facets. */
const Group = Facet.extend({ values: listOf(z.union([Value, Facet])) })

export const List = z.object({ total: z.number(), jobPostings: z.array(z.unknown()), facets: listOf(Group) })
export type List = z.output<typeof List>

export function bodyOf(searchText: string, appliedFacets: Facets = {}, offset = 0): ListBody {
  return { appliedFacets, limit: PAGE_SIZE, offset, searchText }
}

export interface Plan {
  /** Lists that replace this one, and how many parts each may have. */
  splits: { facets: Facets; partsMax: number }[]
  /** Where the further pages of this one end; 0 if they are not needed. */
  end: number
  /** Maximum number of postings; some of them twice. */
  countMax: number
  /** Not all can be reached. */
  isCut: boolean
}

/** What the first page of a list says about the rest; `total` and facets are meaningless on the others. */
export function planOf({ total, facets }: Pick<List, 'total' | 'facets'>, applied: Facets, partsMax = PARTS_MAX): Plan {
  if (total < TOTAL_MAX) return { splits: [], end: total, countMax: total, isCut: false }
  const known = SPLIT_BY.flatMap((name) => {
    const values = valuesOf(facets, name)
    return values.length === 0 ? [] : [{ name, values, sum: values.reduce((sum, { count }) => sum + (count ?? 0), 0) }]
  })
  const usable = known.filter(
    ({ name, values }) => !Object.hasOwn(applied, name) && values.length > 1 && values.length <= partsMax,
  )
  // A list split by job family leaves out postings without one, so a facet must cover at least as many as any other.
  const needed = Math.max(total, ...known.filter(({ name }) => name !== MANY_VALUED).map(({ sum }) => sum))
  const whole = usable.find(({ sum }) => sum >= needed)
  const facet = whole ?? usable[0]
  if (facet === undefined) return { splits: [], end: TOTAL_MAX, countMax: TOTAL_MAX, isCut: true }
  const splits = facet.values.map(({ id, count }) => ({
    facets: { ...applied, [facet.name]: [id] },
    partsMax: Math.floor((partsMax * (count ?? 1)) / Math.max(1, facet.sum)),
  }))
  if (whole !== undefined) return { splits, end: 0, countMax: facet.sum, isCut: false }
  return { splits, end: TOTAL_MAX, countMax: facet.sum + TOTAL_MAX, isCut: true }
}

function valuesOf(facets: List['facets'], name: string): z.output<typeof Value>[] {
  const all = facets.flatMap((facet) => [facet, ...facet.values.filter((value) => 'facetParameter' in value)])
  const found = all.find(({ facetParameter }) => facetParameter === name)
  return (found?.values ?? []).filter((value) => 'id' in value).filter(({ count }) => count !== 0)
}

/** A list page when going one by one; `end` is that of its list. */
export const listRef = z.object({
  facets: bodySchema.shape.appliedFacets,
  offset: z.number(),
  end: z.number(),
  partsMax: z.number(),
  first: z.string(),
})
/** They travel with every task, so they are limited; the first facet of large tenants has a few dozen values. */
const LISTS_MAX = 1000

export interface ListPage {
  body: ListBody
  /** The end of its list, on pages after the first. */
  end: number
  plan: Plan | undefined
  /** Path of the first posting on it. */
  first: string
  /** Paths of postings that may match. */
  jobs: string[]
  isChoosy: boolean
}

export interface AfterPage {
  /** Postings to fetch now. */
  now: string[]
  /** The rest of the walk. */
  rest: Rest
  /** Number of lists that will not be visited. */
  dropped: number
}

/** What follows a list page if `rest.left` more postings are wanted. */
export function afterPage(rest: Rest, { body, plan, isChoosy, ...page }: ListPage): AfterPage {
  const isReplaced = plan !== undefined && plan.splits.length > 0 && plan.end === 0
  const jobs = isReplaced ? [] : page.jobs // its parts have them, too
  const end = plan?.end ?? page.end
  const offset = body.offset + PAGE_SIZE
  const parts = (plan?.splits ?? []).map((part) => ({ ...part, offset: 0, end: 0, first: '' }))
  const further = offset < end ? [{ facets: body.appliedFacets, offset, end, partsMax: 0, first: page.first }] : []
  const all = [...parts, ...further, ...rest.lists]
  const lists = all.slice(0, LISTS_MAX)
  const dropped = all.length - lists.length
  if (isChoosy) return { now: [], rest: { ...rest, jobs, lists }, dropped }
  const now = jobs.slice(0, rest.left)
  return { now, rest: { ...rest, left: rest.left - now.length, jobs: [], lists }, dropped }
}
