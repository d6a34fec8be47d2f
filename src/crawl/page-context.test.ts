import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as z from 'zod'
import type { ErrorCode } from '../core/error-table.ts'
import { ScrapeError } from '../core/errors.ts'
import type { ItemRow } from '../core/item.ts'
import type { Page } from '../core/page.ts'
import { defineScraper, type Emitted, type HandlerContext } from '../core/scraper.ts'
import type { Json, NewTask } from '../core/task.ts'
import { Document } from '../extract/place.ts'
import { compileScraper } from './compile-scraper.ts'
import { PageContext } from './page-context.ts'
import type { QueuedRoutes } from './queued-routes.ts'
import { type ReadingRequest, readPage } from './read-page.ts'

const Item = z.object({ id: z.string(), title: z.string().min(1), note: z.string().optional() })
const routes = {
  page: {},
  other: {},
  job: { match: '/job/:id', data: z.object({ company: z.string() }) },
  list: { match: '/list/:tag', data: z.object({ page: z.number().default(1) }) },
}
type Routes = typeof routes
type Context = HandlerContext<typeof Item, Routes, 'page', { base: string }>
type Handler = (context: Context) => unknown

interface Given {
  html?: string
  /** The URL of the task; the page is at `pageUrl` after redirects. */
  url?: string
  pageUrl?: string
  route?: keyof Routes & string
  data?: Json
  depth?: number
  attempt?: number
  linksMax?: number
  depthMax?: number
  hosts?: 'any' | ReadonlySet<string>
  file?: string
  recall?: (row: ItemRow) => Emitted
  queuedRoutes?: QueuedRoutes
  /** Collects the warnings that are logged. */
  warnings?: string[]
}

function pageOf(url: string, html: string): Page {
  const body = Buffer.from(html)
  return {
    requestedUrl: url,
    url,
    redirects: [],
    status: 200,
    headers: { 'content-type': 'text/html' },
    body,
    contentType: 'text/html',
    charset: 'UTF-8',
    text: html,
    bytes: { wire: body.length, decoded: body.length },
    timings: { firstByteMs: 1, totalMs: 2 },
    fromCache: false,
    fetchedAtMs: 1_700_000_000_000,
    release() {},
  }
}

function requestFor(handler: Handler, given: Given): ReadingRequest {
  const { url = 'https://a.test/x', route = 'page', data = null, depth = 0, attempt = 1, file } = given
  const scraper = defineScraper({
    name: 'shop',
    item: Item,
    key: 'id',
    routes,
    start() {},
    handlers: { page: handler as never, other: handler as never, job: handler as never, list: handler as never },
  })
  const task = { id: '1', url, route, data, depth, priority: 0, lane: 'bulk', session: undefined }
  return {
    compiled: compileScraper(scraper, {}, file),
    task,
    page: pageOf(given.pageUrl ?? url, given.html ?? '<h1>Hi</h1>'),
    attempt,
    runId: 'run-1',
    args: { base: 'https://a.test/' },
    policy: {
      hosts: given.hosts ?? 'any',
      depthMax: given.depthMax ?? Number.POSITIVE_INFINITY,
      linksMax: given.linksMax ?? 100,
    },
    log: () => ({ debug() {}, info() {}, warn: (message) => void given.warnings?.push(message) }),
    save: async (saved, name, bytes) => `${saved.id}/${name}/${bytes.length}`,
    recall: given.recall ?? (() => 'new'),
    sessions: { keep: async () => {} },
    queuedRoutes: given.queuedRoutes,
  }
}

const read = (handler: Handler, given: Given = {}) => readPage(requestFor(handler, given))

async function failure(handler: Handler, given: Given = {}): Promise<ScrapeError> {
  try {
    await read(handler, given)
  } catch (error) {
    assert.ok(error instanceof ScrapeError, String(error))
    return error
  }
  assert.fail('the handler should have failed')
}

const urls = (tasks: readonly NewTask[]) => tasks.map((task) => task.url)

describe('a handler’s context', () => {
  it('can be destructured in the parameter list, functions included', async () => {
    const reading = await read(
      async ({
        $,
        url,
        html,
        body,
        status,
        headers,
        params,
        data,
        args,
        depth,
        attempt,
        runId,
        fetchedAt,
        ...none
      }) => {
        assert.equal($.text('h1'), 'Hi')
        assert.equal(url.href, 'https://b.test/moved')
        assert.equal(html, '<h1>Hi</h1>')
        assert.equal(body.toString(), '<h1>Hi</h1>')
        assert.equal(status, 200)
        assert.equal(headers['content-type'], 'text/html')
        assert.deepEqual({ ...params }, {})
        assert.deepEqual(data, {})
        assert.deepEqual(args, { base: 'https://a.test/' })
        assert.deepEqual([depth, attempt, runId], [3, 2, 'run-1'])
        assert.equal(fetchedAt.toISOString(), '2023-11-14T22:13:20.000Z')
        assert.deepEqual(none, {})
      },
      { depth: 3, attempt: 2, pageUrl: 'https://b.test/moved' },
    )
    assert.deepEqual([reading.items, reading.tasks, reading.skipped], [[], [], undefined])
    await read(async ({ emit, enqueue, save, log, json, page }) => {
      await emit({ id: '1', title: 'x' })
      await enqueue('page', '/y')
      log.info('hello')
      assert.equal(await save('a.pdf', Buffer.alloc(5)), '1/a.pdf/5')
      assert.equal(typeof json, 'function')
      assert.equal(page, undefined)
    })
  })

  it('reads the page only once, however often it is accessed', async () => {
    await read((context) => {
      assert.equal(context.$, context.$)
      assert.equal(context.url, context.url)
    })
  })

  it('does not parse a page that no handler looks at', async () => {
    const tooDeep = { html: '<b>'.repeat(20_000) }
    await read(({ html }) => html, tooDeep)
    await assert.rejects(
      read(({ $ }) => $.text('i'), tooDeep),
      { code: 'E_HTML_LIMIT' },
    )
  })

  it('releases a parsed page at the end, even if the handler fails', async (t) => {
    const { mock } = t.mock.method(Document.prototype, 'release')
    await read(({ html }) => html)
    assert.equal(mock.callCount(), 0)
    await read(({ $ }) => $.text('h1'))
    assert.equal(mock.callCount(), 1)
    await assert.rejects(read(({ $ }) => $.text('h2')))
    assert.equal(mock.callCount(), 2)
  })

  it('returns path parameters decoded, from the requested URL', async () => {
    const params: unknown[] = []
    await read((context) => params.push({ ...context.params }), {
      route: 'list',
      url: 'https://a.test/list/caf%C3%A9%2Fbar%20%26',
      pageUrl: 'https://a.test/list/elsewhere',
    })
    assert.deepEqual(params, [{ tag: 'café/bar &' }])
  })

  it('returns the data its task carries', async () => {
    await read(({ data }) => assert.deepEqual(data, { company: 'x' }), {
      route: 'job',
      url: 'https://a.test/job/1',
      data: { company: 'x' },
    })
  })

  it('can be disposed twice', () => {
    const request = requestFor(() => {}, {})
    const reading = { items: [], tasks: [], invalid: [], filled: {}, notFetched: {}, skipped: undefined }
    const context = new PageContext(request, reading)
    assert.equal(context.$.text('h1'), 'Hi')
    context[Symbol.dispose]()
    context[Symbol.dispose]()
  })
})

describe('emit', () => {
  it('returns what is remembered of the item: new, same or changed', async () => {
    const said: Emitted[] = []
    const answers: Emitted[] = ['new', 'same', 'changed']
    const reading = await read(
      async ({ emit }) => {
        for (const title of ['x', 'x', 'y']) said.push(await emit({ id: '1', title }))
      },
      { recall: () => answers.shift()! },
    )
    assert.deepEqual(said, ['new', 'same', 'changed'])
    assert.equal(reading.items.length, 3, 'the commit has the last word, so all of them go there')
  })

  it('creates a row with the item’s key, its JSON in schema order, and a hash of it', async () => {
    const { items } = await read(async ({ emit }) => {
      await emit({ title: 'x', id: '7', junk: true } as never)
      await emit({ title: 'y', id: '8' })
      await emit({ title: 'x', id: '7' })
    })
    assert.deepEqual(
      items.map(({ key, json }) => [key, json]),
      [
        ['7', '{"id":"7","title":"x"}'],
        ['8', '{"id":"8","title":"y"}'],
        ['7', '{"id":"7","title":"x"}'],
      ],
    )
    assert.equal(items[0]!.content, items[2]!.content)
    assert.notEqual(items[0]!.content, items[1]!.content)
  })

  it('identifies an item without a value for its key by its content', async () => {
    const { items } = await read(async ({ emit }) => {
      await emit({ id: '', title: 'x' })
      await emit({ id: '', title: 'y' })
    })
    assert.deepEqual(
      items.map(({ key }) => key),
      items.map(({ content }) => content),
    )
    assert.notEqual(items[0]!.key, items[1]!.key)
  })

  it('sets an invalid item aside with its problems, without looking up its key, and does not throw', async () => {
    const circular: Record<string, unknown> = { id: 5 }
    circular['self'] = circular
    const said: Emitted[] = []
    const reading = await read(
      async ({ emit }) => {
        for (const item of [{ id: '1', title: '' }, circular, undefined, { id: '1', title: 'ok' }])
          said.push(await emit(item as never))
      },
      { recall: () => 'same' },
    )
    assert.deepEqual(said, ['invalid', 'invalid', 'invalid', 'same'])
    assert.equal(reading.items.length, 1)
    assert.equal(reading.invalid.length, 3)
    assert.equal(reading.invalid[0]!.item, '{"id":"1","title":""}')
    assert.match(reading.invalid[0]!.problems.join(), /title/)
    assert.equal(reading.invalid[1]!.item, '(not representable as JSON)')
    assert.equal(reading.invalid[2]!.item, 'undefined')
  })

  it('keeps only the beginning of a huge invalid item', async () => {
    const { invalid } = await read(({ emit }) => emit({ id: 5, title: 'x'.repeat(100_000) } as never))
    assert.equal(invalid[0]!.item.length, 10_000)
  })

  it('counts in how many items each field has a value', async () => {
    const { filled } = await read(async ({ emit }) => {
      await emit({ id: '1', title: 'x', note: 'n' })
      await emit({ id: '2', title: 'y', note: '' })
      await emit({ id: '3', title: 'z' })
      await emit({ id: '4', title: '' })
    })
    assert.deepEqual({ ...filled }, { id: 3, title: 3, note: 1 })
  })
})

describe('enqueue', () => {
  it('resolves URLs against the page’s final URL, one level deeper', async () => {
    const { tasks } = await read(({ enqueue }) => enqueue('page', ['next', '?p=2']), {
      depth: 4,
      pageUrl: 'https://b.test/dir/list',
    })
    assert.deepEqual(urls(tasks), ['https://b.test/dir/next', 'https://b.test/dir/list?p=2'])
    assert.deepEqual(
      tasks.map((task) => task.depth),
      [5, 5],
    )
  })

  it('finds the route of a URL by itself', async () => {
    const { tasks } = await read(({ enqueue }) => enqueue(new URL('https://a.test/list/toys')))
    assert.deepEqual(tasks, [{ url: 'https://a.test/list/toys', route: 'list', depth: 1, data: { page: 1 } }])
  })

  it('follows links with data from the mapper, keeps to the allowed hosts, and counts what it refuses', async () => {
    const html = [
      '<a href="/job/1" data-company="x">1</a>',
      '<a href="https://other.test/job/2" data-company="x">2</a>',
      '<a href="/job/3">no company</a>',
      '<a href="/about" data-company="x">no job</a>',
      '<a href="http://[" data-company="x">no url</a>',
      '<a href="mailto:a@b.test">mail</a>',
      '<a name="here">no href</a>',
      '<a href="job/4" data-company="y">4</a>',
    ].join('')
    const answers: unknown[] = []
    const reading = await read(
      async ({ enqueue }) => {
        answers.push(await enqueue.links('job', 'a', (a) => ({ company: a.attr('data-company') as string })))
      },
      { html, url: 'https://a.test/', hosts: new Set(['a.test']) },
    )
    assert.deepEqual(
      reading.tasks.map(({ url, data }) => [url, data]),
      [
        ['https://a.test/job/1', { company: 'x' }],
        ['https://a.test/job/4', { company: 'y' }],
      ],
    )
    assert.deepEqual(answers, [{ added: 2, seen: 0, refused: 4, rerouted: 0, conflicts: 0 }])
    assert.deepEqual(reading.notFetched, { url: 1, scheme: 1, host: 1, data: 1, route: 1 })
  })

  it('lets a named target leave the allowed hosts', async () => {
    const { tasks } = await read(({ enqueue }) => enqueue('page', 'https://other.test/'), {
      hosts: new Set(['a.test']),
    })
    assert.deepEqual(urls(tasks), ['https://other.test/'])
  })

  it('applies linksMax to the whole page, not per call', async () => {
    const answers: unknown[] = []
    const reading = await read(
      async ({ enqueue }) => {
        answers.push(await enqueue('page', ['/1', '/2']))
        answers.push(await enqueue('page', ['/3', '/4']))
        answers.push(await enqueue('page', '/5'))
      },
      { linksMax: 3 },
    )
    assert.deepEqual(urls(reading.tasks), ['https://a.test/1', 'https://a.test/2', 'https://a.test/3'])
    const none = { seen: 0, rerouted: 0, conflicts: 0 }
    assert.deepEqual(answers, [
      { ...none, added: 2, refused: 0 },
      { ...none, added: 1, refused: 1 },
      { ...none, added: 0, refused: 1 },
    ])
    assert.deepEqual(reading.notFetched, { links: 2 })
  })

  it('counts repeated links as seen, whichever call repeats them, and files as links', async () => {
    const answers: unknown[] = []
    const reading = await read(
      async ({ enqueue, file }) => {
        answers.push(await enqueue('page', ['/1', '/1#top']))
        answers.push(await enqueue('page', '/1'))
        answers.push(await file('/1'), await file('/1'), await file('/2'), await file('mailto:a@b.test'))
      },
      { linksMax: 2 },
    )
    const counts = (added: number, seen: number, refused: number) => ({
      ...{ added, seen, refused },
      ...{ rerouted: 0, conflicts: 0 },
    })
    assert.deepEqual(answers, [
      counts(1, 1, 0),
      counts(0, 1, 0),
      counts(1, 0, 0),
      counts(0, 1, 0),
      counts(0, 0, 1),
      counts(0, 0, 1),
    ])
    assert.deepEqual(reading.notFetched, { links: 1, scheme: 1 })
  })

  it('gives a link to the route whose match is more specific, and reports how many', async () => {
    const answers: unknown[] = []
    const { tasks, notFetched } = await read(
      async ({ enqueue }) => {
        answers.push(await enqueue.links('page', 'a'), await enqueue.links('list', 'a[rel=next]'))
      },
      { html: '<a href="/about">About</a><a rel="next" href="/list/toys?p=2">Next</a><a href="/about#team">Team</a>' },
    )
    assert.deepEqual(
      tasks.map(({ url, route, data }) => [url, route, data]),
      [
        ['https://a.test/about', 'page', undefined],
        ['https://a.test/list/toys?p=2', 'list', { page: 1 }],
      ],
    )
    assert.deepEqual(answers, [
      { added: 2, seen: 1, refused: 0, rerouted: 1, conflicts: 0 },
      { added: 0, seen: 1, refused: 0, rerouted: 0, conflicts: 0 },
    ])
    assert.deepEqual(notFetched, {})
  })

  it('does not queue a page whose route needs data that was not given, and reports it', async () => {
    const warnings: string[] = []
    const { tasks, notFetched } = await read(
      async ({ enqueue }) => {
        const answer = await enqueue('page', ['/job/1', '/job/2'])
        assert.deepEqual(answer, { added: 0, seen: 0, refused: 0, rerouted: 0, conflicts: 2 })
        await enqueue('job', { url: '/job/2', data: { company: 'x' } })
      },
      { html: '', warnings },
    )
    assert.deepEqual(
      tasks.map(({ url, route }) => [url, route]),
      [['https://a.test/job/2', 'job']],
    )
    assert.deepEqual(notFetched, { conflict: 2 })
    assert.deepEqual(warnings, [
      'https://a.test/job/1 belongs to route job, which needs data that was not given: route page does not get it',
    ])
  })

  it('notices a page that two routes without a match want, on the same page or on another', async () => {
    const queuedRoutes = new Map([['https://a.test/?p=3', 'other']])
    const warnings: string[] = []
    const answers: unknown[] = []
    const { tasks, notFetched } = await read(
      async ({ enqueue }) => {
        answers.push(await enqueue('page', ['/1', '/?p=2', '/?p=3', '/x']))
        answers.push(await enqueue('other', ['/?p=2', '/?p=4']))
      },
      { queuedRoutes: queuedRoutes.set('https://a.test/x', 'other'), warnings },
    )
    assert.deepEqual(answers, [
      { added: 3, seen: 0, refused: 0, rerouted: 0, conflicts: 1 },
      { added: 1, seen: 0, refused: 0, rerouted: 0, conflicts: 1 },
    ])
    const first = tasks.filter(({ url }) => url === 'https://a.test/?p=2')
    assert.deepEqual(first, [{ url: 'https://a.test/?p=2', route: 'page', depth: 1 }])
    assert.deepEqual(notFetched, { conflict: 2 })
    assert.deepEqual(warnings, [
      'https://a.test/?p=3 is already queued for route other: route page does not get it',
      'https://a.test/?p=2 is already queued for route page: route other does not get it',
    ])
  })

  it('refuses targets that would be too deep', async () => {
    const reading = await read(({ enqueue }) => enqueue('page', '/1'), { depth: 2, depthMax: 2 })
    assert.deepEqual([reading.tasks.length, reading.notFetched], [0, { depth: 1 }])
  })

  it('fails the page for a bad named target', async () => {
    const code = async (handler: Handler): Promise<ErrorCode> => (await failure(handler)).code
    assert.equal(await code(({ enqueue }) => enqueue('page', 'http://')), 'E_URL_INVALID')
    assert.equal(await code(({ enqueue }) => enqueue('job', { url: '/job/1', data: {} as never })), 'E_ROUTE_DATA')
    assert.equal(await code(({ enqueue }) => enqueue('nope' as 'page', '/1')), 'E_ROUTE_UNMATCHED')
  })
})

describe('skip, retry and stop', () => {
  it('keeps what was emitted and enqueued before a skip, and does nothing after it', async () => {
    const reading = await read(async ({ emit, enqueue, skip }) => {
      await emit({ id: '1', title: 'x' })
      await enqueue('page', '/y')
      skip('no more of this')
      await emit({ id: '2', title: 'y' })
    })
    assert.deepEqual([reading.items.length, reading.tasks.length], [1, 1])
    assert.equal(reading.skipped, 'no more of this')
  })

  it('requests a retry after a time in words or milliseconds', async () => {
    const after = async (time?: string | number) => (await failure(({ retry }) => retry(time))).details.retryAfterMs
    assert.equal(await after('30s'), 30_000)
    assert.equal(await after(250), 250)
    assert.equal(await after(), undefined)
    const error = await failure(({ retry }) => retry('1s', 'half a page'))
    assert.deepEqual([error.code, error.verdict, error.message], ['E_RETRY_ASKED', 'retry', 'half a page'])
    assert.equal(error.details.url, 'https://a.test/x')
  })

  it('ends the run with the handler’s reason, and keeps what was emitted before', async () => {
    const reading = await read(async ({ emit, stop }) => {
      await emit({ id: '1', title: 'x' })
      stop('the site is closed')
      await emit({ id: '2', title: 'y' })
    })
    assert.deepEqual(
      [reading.stop?.code, reading.stop?.verdict, reading.stop?.message],
      ['E_STOPPED', 'halt', 'the site is closed'],
    )
    assert.equal(reading.items.length, 1)
  })
})

describe('errors of a handler', () => {
  it('name the file and line of the scraper, even across an await', async () => {
    let line = 0
    const error = await failure(
      async ({ enqueue }) => {
        await enqueue('page', '/y')
        line = Number(/:(\d+):\d+\)?$/.exec(new Error('here').stack!.split('\n')[1]!)![1]) + 1
        throw new TypeError('x is not a function')
      },
      { file: import.meta.filename },
    )
    assert.equal(error.code, 'E_HANDLER')
    assert.equal(error.message, 'TypeError: x is not a function')
    assert.equal(error.details.at, `${import.meta.filename}:${line} (handler "page")`)
    assert.equal(error.details.url, 'https://a.test/x')
    assert.ok(error.cause instanceof TypeError)
  })

  it('keep their own code if they have one, and still say where', async () => {
    const error = await failure(({ $ }) => $.text('h2.missing'), { file: import.meta.filename })
    assert.equal(error.code, 'E_SELECTOR_EMPTY')
    assert.match(error.details.at!, /page-context\.test\.ts:\d+ \(handler "page"\)$/)
  })

  it('name only the handler if the stack trace does not lead to the file', async () => {
    const thrown = () => {
      throw 'just text'
    }
    const error = await failure(thrown, { file: '/nowhere/shop.ts' })
    assert.deepEqual([error.code, error.message], ['E_HANDLER', 'just text'])
    assert.equal(error.details.at, '/nowhere/shop.ts (handler "page")')
  })

  it('name no location if the scraper has no file', async () => {
    const error = await failure(() => {
      throw new Error('oops')
    })
    assert.equal(error.details.at, undefined)
  })

  it('are the same for a rejected promise as for a throw', async () => {
    assert.equal((await failure(() => Promise.reject(new Error('late')))).message, 'Error: late')
  })

  it('say so if the scraper has no such route', async () => {
    const request = requestFor(() => {}, {})
    const gone = { ...request, task: { ...request.task, route: 'gone' } }
    await assert.rejects(readPage(gone), (error: ScrapeError) => error.code === 'E_ROUTE_UNMATCHED')
  })

  it('fail the page, not the process, if they come from a call that is not awaited', async () => {
    const hasty: Handler[] = [
      ({ enqueue }) => void enqueue('nowhere' as 'other', 'https://a.test/'),
      ({ enqueue }) => void enqueue.links('other', 'a[[['),
      ({ file }) => void file('https://a.test/f', { name: 7 } as never),
      async (context) => {
        void (context as unknown as { keepLogin: () => Promise<void> }).keepLogin()
        await new Promise((resolve) => setImmediate(resolve)) // an unhandled rejection would end the process here
      },
    ]
    for (const handler of hasty) assert.ok((await failure(handler)) instanceof ScrapeError, String(handler))
    const reading = await read(({ enqueue, emit }) => {
      void enqueue('other', 'https://a.test/1')
      void emit({ id: '1', title: 'One' })
    })
    assert.deepEqual([urls(reading.tasks), reading.items.length], [['https://a.test/1'], 1])
    const caught = await read(async ({ enqueue }) => {
      await enqueue('nowhere' as 'other', 'https://a.test/').catch(() => {})
    })
    assert.deepEqual(caught.tasks, [])
  })
})

describe('json', () => {
  it('is the parsed body', async () => {
    await read(({ json }) => assert.deepEqual(json(), { a: [1] }), { html: '{"a":[1]}' })
  })

  it('says which page is not JSON and why', async () => {
    const error = await failure(({ json }) => json(), { html: '<html>', pageUrl: 'https://a.test/api' })
    assert.equal(error.code, 'E_JSON_INVALID')
    assert.match(error.message, /^the body of https:\/\/a\.test\/api is not JSON: .*Unexpected token/)
    assert.ok(error.cause instanceof SyntaxError)
  })

  it('rejects an empty body', async () => {
    assert.equal((await failure(({ json }) => json(), { html: '' })).code, 'E_JSON_INVALID')
  })
})
