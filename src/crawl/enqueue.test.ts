import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as z from 'zod'
import type { ErrorCode } from '../core/error-table.ts'
import { ScrapeError } from '../core/errors.ts'
import { limitsSchema } from '../core/options.ts'
import { defineScraper } from '../core/scraper.ts'
import type { NewTask } from '../core/task.ts'
import { compileScraper } from './compile-scraper.ts'
import { DroppedLinks } from './dropped-links.ts'
import { type EnqueuePolicy, enqueuePolicy, newCounts, type ToTasksRequest, toTasks } from './enqueue.ts'

const compiled = compileScraper(
  defineScraper({
    name: 'shop',
    item: z.object({}),
    routes: {
      list: { match: '/list', priority: 5, lane: 'lists' },
      job: { match: '/job/:id', data: z.object({ company: z.string(), page: z.number().default(1) }) },
      page: {},
    },
    start() {},
    handlers: { list() {}, job() {}, page() {} },
  }),
)

const open: EnqueuePolicy = { hosts: 'any', depthMax: Number.POSITIVE_INFINITY, linksMax: 100 }

function stream(
  targets: unknown,
  { policy = open, ...request }: Partial<ToTasksRequest> & { policy?: EnqueuePolicy } = {},
) {
  const counts = newCounts()
  const wanted = { route: 'page', base: 'https://a.test/dir/', depth: 1, room: 100, ...request, targets }
  return { tasks: toTasks(compiled, policy, wanted, counts), counts }
}

function collect(targets: unknown, request: Parameters<typeof stream>[1] = {}) {
  const { tasks, counts } = stream(targets, request)
  return { tasks: [...tasks], dropped: counts.notFetched }
}

const urls = (found: { tasks: NewTask[] }) => found.tasks.map((task) => task.url)
const link = (url: string, data?: unknown) => ({ url, data, isLink: true })
const isCode = (code: ErrorCode) => (error: unknown) => error instanceof ScrapeError && error.code === code

describe('toTasks', () => {
  it('accepts a string, a URL, an object, or any iterable of these', () => {
    assert.deepEqual(collect('x').tasks, [{ url: 'https://a.test/dir/x', route: 'page', depth: 1 }])
    assert.deepEqual(urls(collect(new URL('https://b.test/#f'))), ['https://b.test/'])
    assert.deepEqual(urls(collect({ url: '/y' })), ['https://a.test/y'])
    const mixed = new Set(['x', new URL('https://b.test/'), { url: '/y' }])
    assert.deepEqual(urls(collect(mixed)), ['https://a.test/dir/x', 'https://b.test/', 'https://a.test/y'])
  })

  it('normalises what it is given', () => {
    assert.deepEqual(urls(collect('https://u:p@B.test./?utm_source=x&b=1&a=2#f')), ['https://b.test/?a=2&b=1'])
  })

  it('finds the route by the path if none is named', () => {
    const found = collect(['/list', '/other', { url: '/job/7', data: { company: 'x' } }], { route: undefined })
    assert.deepEqual(
      found.tasks.map((task) => task.route),
      ['list', 'page', 'job'],
    )
  })

  it('gives a URL to the route whose match claims it, with that route’s priority, lane and defaults', () => {
    const { tasks, counts } = stream(['/list', '/other'])
    assert.deepEqual(
      [...tasks],
      [
        { url: 'https://a.test/list', route: 'list', depth: 1, priority: 5, lane: 'lists' },
        { url: 'https://a.test/other', route: 'page', depth: 1 },
      ],
    )
    assert.equal(counts.rerouted, 1)
  })

  it('leaves a URL with its own key, or with a fixed route, to the named route', () => {
    const routesOf = (found: { tasks: NewTask[] }) => found.tasks.map((task) => task.route)
    assert.deepEqual(routesOf(collect({ url: '/list', key: 'list again' })), ['page'])
    assert.deepEqual(routesOf(collect('/list', { isRouteFixed: true })), ['page'])
  })

  it('still refuses a URL that does not match the route it is enqueued for', () => {
    assert.throws(() => collect('/other', { route: 'list' }), isCode('E_ROUTE_UNMATCHED'))
  })

  it('passes data to the route that claims the URL, and reports a conflict if that route needs more', () => {
    const conflicts: unknown[] = []
    const onConflict = (conflict: unknown) => void conflicts.push(conflict)
    const found = collect([{ url: '/job/1', data: { company: 'x' } }, '/job/2'], { onConflict })
    assert.deepEqual(found.tasks, [
      { url: 'https://a.test/job/1', route: 'job', depth: 1, data: { company: 'x', page: 1 } },
    ])
    assert.deepEqual(conflicts, [{ url: 'https://a.test/job/2', wanted: 'page', owner: 'job', why: 'data' }])
  })

  it('takes each page once, and does not count repeated ones against the limit', () => {
    const queued = new Map<string, string>()
    const { tasks, counts } = stream(['/1', '/1#top', '/2', '/1?utm_source=x'], { room: 2, queued })
    assert.deepEqual(urls({ tasks: [...tasks] }), ['https://a.test/1', 'https://a.test/2'])
    assert.deepEqual([counts.repeated, counts.notFetched], [2, {}])
  })

  it('gives a task its route’s priority and lane unless the target has its own', () => {
    const [own, inherited] = collect([{ url: '/list', priority: 9, lane: 'fast' }, '/list'], { route: 'list' }).tasks
    assert.deepEqual([own!.priority, own!.lane], [9, 'fast'])
    assert.deepEqual([inherited!.priority, inherited!.lane], [5, 'lists'])
  })

  it('passes a key and the depth on', () => {
    const [task] = collect({ url: '/search', key: 'page 2' }, { depth: 7 }).tasks
    assert.deepEqual(task, { url: 'https://a.test/search', route: 'page', depth: 7, key: 'page 2' })
  })

  it('restricts found links to the allowed hosts, ports included, and lets named targets go anywhere', () => {
    const policy = { ...open, hosts: new Set(['a.test', 'b.test:81']) }
    const links = ['https://a.test/1', 'https://b.test:81/2', 'https://b.test/3', 'https://c.test/4', 'http://a.test/5']
    const found = collect(
      links.map((url) => link(url)),
      { policy },
    )
    assert.deepEqual(urls(found), ['https://a.test/1', 'https://b.test:81/2', 'http://a.test/5'])
    assert.deepEqual(found.dropped, { host: 2 })
    assert.deepEqual(collect(links, { policy }).dropped, {})
  })

  it('refuses everything beyond the depth limit and accepts what is exactly at it', () => {
    const policy = { ...open, depthMax: 2 }
    assert.equal(collect(['x', 'y'], { policy, depth: 2 }).tasks.length, 2)
    assert.deepEqual(collect(['x', 'y'], { policy, depth: 3 }), { tasks: [], dropped: { depth: 2 } })
  })

  it('stops adding when a page has no more room, and counts the rest', () => {
    const found = collect(['1', '2', '3', '4', '5'], { room: 3 })
    assert.equal(found.tasks.length, 3)
    assert.deepEqual(found.dropped, { links: 2 })
  })

  it('counts distinct links against the limit: a page with 10,001 fragments has room for the next page', () => {
    const fragments = Array.from({ length: 10_001 }, (_, i) => `#part-${i}`)
    const found = stream([...fragments, '?utm_source=x', '/two.html', '/two.html#end'], {
      room: 10_000,
      queued: new Map(),
    })
    assert.deepEqual(urls({ tasks: [...found.tasks] }), ['https://a.test/dir/', 'https://a.test/two.html'])
    assert.deepEqual([found.counts.notFetched, found.counts.repeated], [{}, 10_002])
  })

  it('counts a skipped link once, however often it appears on the page', () => {
    const own = { queued: new Map(), dropped: new DroppedLinks() }
    const policy = { ...open, hosts: new Set(['a.test']) }
    const targets = ['/1', '/1#a', '/2', '/2#b', '/3', 'https://b.test/', 'https://b.test/#c', 'http://', 'http://']
    const found = collect(
      targets.map((url) => link(url)),
      { ...own, room: 1, policy },
    )
    assert.deepEqual([urls(found), found.dropped], [['https://a.test/1'], { links: 2, host: 1, url: 1 }])
    const tooDeep = collect(['/4', '/4#a'], { ...own, policy: { ...open, depthMax: 0 } })
    assert.deepEqual(tooDeep.dropped, { depth: 1 })
  })

  it('gives the room of a refused link to the next one', () => {
    const policy = { ...open, hosts: new Set(['a.test']) }
    const found = collect([link('https://no.test/'), link('http://'), link('/1'), link('/2')], { policy, room: 2 })
    assert.deepEqual(urls(found), ['https://a.test/1', 'https://a.test/2'])
    assert.deepEqual(found.dropped, { host: 1, url: 1 })
  })

  it('checks data against the route’s schema and fills its defaults', () => {
    const [task] = collect({ url: '/job/7', data: { company: 'x', junk: 1 } }, { route: 'job' }).tasks
    assert.deepEqual(task!.data, { company: 'x', page: 1 })
  })

  it('throws for data that violates the schema, and says why', () => {
    for (const target of ['/job/7', { url: '/job/7' }, { url: '/job/7', data: { company: 5 } }]) {
      assert.throws(
        () => collect(target, { route: 'job' }),
        (error: ScrapeError) => {
          assert.equal(error.code, 'E_ROUTE_DATA')
          assert.match(error.details.notes!.join(), /^data\.company: /)
          assert.equal(error.details.url, 'https://a.test/job/7')
          return true
        },
      )
    }
  })

  it('leaves the data of a route without a schema unchanged', () => {
    assert.deepEqual(collect({ url: '/x', data: { a: [1] } }).tasks[0]!.data, { a: [1] })
    assert.equal('data' in collect('/x').tasks[0]!, false)
  })

  it('throws for a bad target that was named', () => {
    assert.throws(() => collect(['/ok', 'http://']), isCode('E_URL_INVALID'))
    assert.throws(() => collect('mailto:a@b.test'), isCode('E_URL_SCHEME'))
    assert.throws(() => collect('/elsewhere', { route: 'list' }), isCode('E_ROUTE_UNMATCHED'))
    assert.throws(() => collect('/x', { route: 'nope' }), isCode('E_ROUTE_UNMATCHED'))
    assert.throws(() => collect('relative', { base: undefined }), isCode('E_URL_INVALID'))
  })

  it('throws for values that are not targets at all', () => {
    for (const targets of [undefined, null, 5, true, {}, [['ok'], 7], () => '/x'])
      assert.throws(() => collect(targets), isCode('E_URL_INVALID'), String(targets))
  })

  it('refuses a bad link without affecting the others', () => {
    const company = { company: 'x' }
    const found = collect(
      [
        link('/job/1', company),
        link('http://', company),
        link('mailto:a@b.test', company),
        link(`/job/${'9'.repeat(9000)}`, company),
        link('/about', company),
        link('/job/2', { company: 2 }),
        link('/job/3', company),
      ],
      { route: 'job' },
    )
    assert.deepEqual(urls(found), ['https://a.test/job/1', 'https://a.test/job/3'])
    assert.deepEqual(found.dropped, { url: 2, scheme: 1, route: 1, data: 1 })
  })

  it('reads a million targets one at a time', () => {
    let given = 0
    function* many() {
      for (; given < 1_000_000; given++) yield `/${given}`
    }
    const { tasks } = stream(many(), { room: Number.POSITIVE_INFINITY })
    for (let taken = 1; taken <= 1000; taken++) {
      assert.equal(tasks.next().value!.url, `https://a.test/${taken - 1}`)
      assert.ok(given <= taken, `${given} read for ${taken}`)
    }
    tasks.return(undefined)
    assert.ok(given < 1001)
  })

  it('ends the source when its reader stops early', () => {
    let isEnded = false
    function* source() {
      try {
        for (let n = 0; ; n++) yield `/${n}`
      } finally {
        isEnded = true
      }
    }
    for (const task of stream(source()).tasks) if (task.url.endsWith('/5')) break
    assert.equal(isEnded, true)
  })
})

describe('enqueuePolicy', () => {
  const policy = (limits: object) => enqueuePolicy(limitsSchema.parse(limits), ['a.test', 'b.test'])

  it('allows the hosts of the start tasks unless told otherwise', () => {
    assert.deepEqual(policy({}).hosts, new Set(['a.test', 'b.test']))
    assert.deepEqual(policy({ hosts: ['c.test'] }).hosts, new Set(['c.test']))
    assert.equal(policy({ hosts: 'any' }).hosts, 'any')
  })

  it('goes to any depth unless one is set, and 0 counts as set', () => {
    assert.equal(policy({}).depthMax, Number.POSITIVE_INFINITY)
    assert.equal(policy({ depth: 0 }).depthMax, 0)
    assert.equal(policy({ linksMax: 7 }).linksMax, 7)
  })
})

describe('toTasks for users', () => {
  const of = (session: string, target: unknown) => collect(target, { session }).tasks[0]!

  it('creates a separate task for each user from one URL, even under an explicit key', () => {
    const keys = [
      of('alice', '/x').key,
      of('bob', '/x').key,
      of('alice', { url: '/x', key: 'mine' }).key,
      of('bob', { url: '/x', key: 'mine' }).key,
      collect({ url: '/x', key: 'mine' }).tasks[0]!.key,
    ]
    assert.equal(new Set(keys).size, 5)
  })

  it('gives a page the user of the page that found it, unless it names another', () => {
    assert.equal(of('alice', '/x').session, 'alice')
    assert.equal(of('alice', { url: '/x', session: 'bob' }).session, 'bob')
    assert.equal(collect('/x').tasks[0]!.session, undefined)
  })

  it('refuses pages in the lanes for files', () => {
    assert.throws(() => collect({ url: '/x', lane: 'files' }), isCode('E_ROUTE_DATA'))
    assert.throws(() => collect({ url: '/x', lane: 'files@here' }), isCode('E_ROUTE_DATA'))
  })
})
