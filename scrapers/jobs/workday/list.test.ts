/** How lists that are too long are split. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { afterPage, bodyOf, List, PARTS_MAX, type Plan, planOf } from './list.ts'

const facet = (facetParameter: string, counts: Record<string, number>) => ({
  facetParameter,
  values: Object.entries(counts).map(([id, count]) => ({ id, count })),
})
const plan = (total: number, facets: object[], applied: Record<string, string[]> = {}) =>
  planOf(List.parse({ total, jobPostings: [], facets }), applied)
const partsOf = ({ splits }: Plan) => splits.map(({ facets }) => facets)

test('reads a list of fewer than 2000 as it is', () => {
  assert.deepEqual(plan(1999, [facet('timeType', { full: 1000, part: 999 })]), {
    splits: [],
    end: 1999,
    countMax: 1999,
    isCut: false,
  })
})

test('uses facets in their order, each once', () => {
  const facets = [
    facet('workerSubType', { regular: 2500, temp: 500 }),
    facet('timeType', { full: 2500, part: 500 }),
    facet('jobFamilyGroup', { eng: 2900, ops: 100, none: 0 }),
  ]
  assert.deepEqual(partsOf(plan(2000, facets)), [{ jobFamilyGroup: ['eng'] }, { jobFamilyGroup: ['ops'] }])
  const eng = { jobFamilyGroup: ['eng'] }
  assert.deepEqual(partsOf(plan(2000, facets, eng)), [
    { ...eng, timeType: ['full'] },
    { ...eng, timeType: ['part'] },
  ])
  const full = { ...eng, timeType: ['full'] }
  assert.deepEqual(partsOf(plan(2000, facets, full))[1], { ...full, workerSubType: ['temp'] })
})

test('also finds locations in their group', () => {
  const facets = [{ facetParameter: 'locationMainGroup', values: [facet('locations', { berlin: 1500, austin: 1500 })] }]
  assert.deepEqual(plan(2000, facets), {
    splits: [
      { facets: { locations: ['berlin'] }, partsMax: 10_000 },
      { facets: { locations: ['austin'] }, partsMax: 10_000 },
    ],
    end: 0,
    countMax: 3000,
    isCut: false,
  })
})

test('does not split by a facet that some postings lack, as long as there is another', () => {
  const facets = [facet('jobFamilyGroup', { eng: 1200, ops: 900 }), facet('timeType', { full: 2000, part: 500 })]
  assert.deepEqual(partsOf(plan(2000, facets)), [{ timeType: ['full'] }, { timeType: ['part'] }])
  const alone = plan(2000, [facet('jobFamilyGroup', { eng: 900, ops: 800 })])
  assert.deepEqual([alone.splits.length, alone.end, alone.isCut], [2, 2000, true])
})

test('reads a list that cannot be split as far as possible, and says so', () => {
  const applied = { jobFamilyGroup: ['a'], timeType: ['b'], locations: ['c'], workerSubType: ['d'] }
  const facets = Object.keys(applied).map((name) => facet(name, { a: 2500, b: 2500 }))
  assert.deepEqual(plan(2000, facets, applied), { splits: [], end: 2000, countMax: 2000, isCut: true })
  assert.equal(plan(2000, []).isCut, true)
})

test('stops at facets that are the same for every part', () => {
  const values = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`v${i}`, 2500]))
  const facets = ['jobFamilyGroup', 'timeType', 'locations', 'workerSubType'].map((name) => facet(name, values))
  const listsOf = (applied: Record<string, string[]>, partsMax: number): number => {
    const { splits, isCut } = planOf(List.parse({ total: 2000, jobPostings: [], facets }), applied, partsMax)
    assert.equal(isCut, splits.length === 0)
    return splits.length === 0 ? 1 : splits.reduce((sum, part) => sum + listsOf(part.facets, part.partsMax), 0)
  }
  assert.equal(listsOf({}, PARTS_MAX), 30 * 30)
})

test('walks through the parts of a list first when going one by one, and reports those beyond the limit', () => {
  const rest = { left: 5, step: 0, jobs: [], lists: ['older'] }
  const split = (count: number) => ({
    splits: Array.from({ length: count }, (_, i) => ({ facets: { timeType: [String(i)] }, partsMax: 9 })),
    end: 0,
    countMax: 9000,
    isCut: false,
  })
  const page = { body: bodyOf(''), end: 0, first: '/job/a', jobs: ['/job/a'], isChoosy: true }
  const few = afterPage(rest, { ...page, plan: split(2) })
  assert.deepEqual(few.rest.lists.slice(1), [
    { facets: { timeType: ['1'] }, partsMax: 9, offset: 0, end: 0, first: '' },
    'older',
  ])
  assert.deepEqual([few.now, few.rest.jobs, few.dropped], [[], [], 0])
  const many = afterPage(rest, { ...page, plan: split(1500) })
  assert.deepEqual([many.rest.lists.length, many.dropped], [1000, 501])
  const last = afterPage(rest, { ...page, plan: undefined, isChoosy: false })
  assert.deepEqual([last.now, last.rest.left, last.rest.lists], [['/job/a'], 4, ['older']])
})
