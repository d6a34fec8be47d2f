/** `sluice serve` as callers use it: a real process, real runs, real HTTP. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { ApiError, createClient } from '../src/server/api/client.ts'
import { problemSchema } from '../src/server/api/problem.ts'
import type { Endpoint } from '../src/server/api/routes/endpoint.ts'
import { ENDPOINTS } from '../src/server/api/routes/endpoints.ts'
import { until } from './fleet.ts'
import { childrenOf, type Served, startServe } from './serve.ts'
import { type BooksSite, startBooksSite } from './site/books.ts'
import { sluice, temporaryFolder } from './sluice.ts'

let site: BooksSite
let folder: ReturnType<typeof temporaryFolder>
let server: Served
let base: string

before(async () => {
  site = await startBooksSite({ products: 100, misbehave: false })
  folder = temporaryFolder()
  // One of the tests creates a key; the others send none.
  const flags = ['--rps', '0', '--allow-address', new URL(site.url).host, '--no-key-on-loopback']
  server = await startServe(flags, { cwd: folder.path })
  base = server.url
})

after(async () => {
  await server[Symbol.asyncDispose]()
  await site[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

async function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(base + path, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  const isJson = /json(?:;|$)/.test(response.headers.get('content-type') ?? '')
  return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : undefined }
}

const startBooks = async (headers = {}, from = site.url) =>
  await ask('POST', '/v1/runs', { scraper: 'books', args: { site: from } }, headers)

/** With headers that fetch would not send. */
function statusOf(path: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    request(base + path, { headers }, (response) => {
      response.resume()
      resolve(response.statusCode!)
    })
      .once('error', reject)
      .end()
  })
}

describe('sluice serve', () => {
  it('executes a requested run, and returns its items', async () => {
    const started = await startBooks()
    assert.equal(started.status, 202, started.text)
    const { id, url } = started.json
    await until('the run is finished', async () => (await ask('GET', url)).json.state === 'finished')
    const { json: run } = await ask('GET', url)
    assert.deepEqual([run.items.new, run.queue.remaining, run.isAlive, run.exitCode], [100, 0, false, 0])
    const first = (await ask('GET', `${url}/items?limit=60`)).json
    const second = (await ask('GET', `${url}/items?limit=60&cursor=${first.next}`)).json
    assert.deepEqual([first.data.length, second.data.length, second.next], [60, 40, null])
    const { text } = await ask('GET', `${url}/items?format=jsonl`)
    assert.equal(text.trim().split('\n').length, 100)
    assert.match((await ask('GET', `${url}/items?format=csv`)).text, /^title,price,rating/)
    const listed = (await ask('GET', '/v1/runs?scraper=books')).json.data
    assert.ok(listed.some((one: { id: string; state: string }) => one.id === id && one.state === 'finished'))
    assert.match(
      (await sluice(['ps', '--all'], { cwd: folder.path })).stdout,
      new RegExp(id),
      'the commands see it, too',
    )
  })

  it('executes a request that comes twice only once', async () => {
    const key = { 'idempotency-key': 'twice' }
    const [first, second] = [await startBooks(key), await startBooks(key)]
    assert.equal(first.json.id, second.json.id)
    assert.equal(second.headers.get('idempotent-replayed'), 'true')
    const other = await ask('POST', '/v1/runs', { scraper: 'pages' }, key)
    assert.equal(other.status, 422)
    assert.equal(other.json.code, 'E_IDEMPOTENCY_OTHER')
  })

  it('resumes a run whose process was killed', async () => {
    const slow = { scraper: 'books', args: { site: site.url, details: true }, limits: { perHost: { rps: 50 } } }
    const { url, id } = (await ask('POST', '/v1/runs', slow)).json
    await until('it works', async () => (await ask('GET', url)).json.queue.completed > 10)
    process.kill(childrenOf(server.pid)[0]!, 'SIGKILL')
    await until('it is finished all the same', async () => (await ask('GET', url)).json.state === 'finished')
    assert.equal((await ask('GET', `${url}/items?format=jsonl`)).text.trim().split('\n').length, 100, id)
  })

  it('streams events to clients, and continues where one left off', async () => {
    const { url } = (await startBooks()).json
    const events = await eventsOf(`${url}/events`)
    assert.equal(events.at(-1)!.type, 'end')
    assert.equal(JSON.parse(events.at(-1)!.data).state, 'finished')
    const reports = events.filter(({ type }) => type === 'run').map(({ data }) => JSON.parse(data))
    assert.equal(reports.at(-1).items.new, 100)
    assert.ok(events.some(({ type }) => type === 'log'))
    assert.deepEqual((await eventsOf(`${url}/events`)).map(({ type }) => type).at(-1), 'end', 'also when it is over')
  })

  it('keeps events for a client that reconnects after all have left', async () => {
    const slow = { scraper: 'books', args: { site: site.url, details: true }, limits: { perHost: { rps: 60 } } }
    const { url } = (await ask('POST', '/v1/runs', slow)).json
    const seen = await firstEventsOf(`${url}/events`, 3)
    await until('it is over', async () => (await ask('GET', url)).json.state === 'finished')
    const rest = await eventsOf(`${url}/events`, { 'last-event-id': seen.at(-1)!.id })
    const numbers = [...seen, ...rest].map(({ id }) => Number(id.split('-')[1]))
    assert.deepEqual(
      numbers,
      [...numbers.keys()].map((i) => i + 1),
      'every event once',
    )
    assert.equal(rest.at(-1)!.type, 'end')
    const after = await ask('GET', `${url}/events`, undefined, { 'last-event-id': rest.at(-1)!.id })
    assert.deepEqual([after.status, after.text], [204, ''], 'a browser does not ask again after this')
    const logged = [...seen, ...rest].filter(({ type }) => type === 'log').map(({ data }) => data)
    const { path } = folder
    const [file] = globSync(`${path}/runs/books/${url.split('/').at(-1)}/log.jsonl`)
    assert.deepEqual(logged, readFileSync(file!, 'utf8').trim().split('\n'))
  })

  it('keeps the limits of a resumed run, here and with the command', async () => {
    const rps = 20
    const slow = { scraper: 'books', args: { site: site.url, details: true }, limits: { perHost: { rps } } }
    const { url, id } = (await ask('POST', '/v1/runs', slow)).json
    const done = async () => (await ask('GET', url)).json.queue.completed
    await until('it works', async () => (await done()) > 2)
    await ask('POST', `${url}/cancel`)
    await until('it is over', async () => !(await ask('GET', url)).json.isAlive)
    assert.equal((await ask('POST', `${url}/resume`)).json.isChanged, true)
    const fromMs = performance.now()
    const before = await done()
    await until('it works again', async () => (await done()) > before + 10)
    assert.ok(
      (await done()) - before <= ((performance.now() - fromMs) / 1000 + 1) * rps * 1.2,
      'not faster than it may',
    )
    await ask('POST', `${url}/cancel`)
    await until('it is over', async () => !(await ask('GET', url)).json.isAlive)
    const more = ['--pages', '1', '--allow-address', new URL(site.url).host]
    await sluice(['run', 'books', '--resume', id, ...more], { cwd: folder.path })
    const record = JSON.parse(readFileSync(`${folder.path}/runs/books/${id}/run.json`, 'utf8'))
    assert.deepEqual([record.limits.perHost.rps, record.limits.pages, record.isServed], [rps, 1, false])
  })

  it('pages through all runs, also by state and scraper', async () => {
    const all = async (query: string) => {
      const ids: string[] = []
      for (let cursor = ''; ; ) {
        const { data, next } = (await ask('GET', `/v1/runs?limit=2${query}${cursor}`)).json
        ids.push(...data.map((run: { id: string }) => run.id))
        if (next === null) return ids
        cursor = `&cursor=${next}`
      }
    }
    const folders = globSync('*/*/run.json', { cwd: `${folder.path}/runs` }).map((file) => file.split('/')[1]!)
    const ids = await all('')
    assert.deepEqual(ids, [...new Set(folders)].sort().reverse())
    const [finished, stopped] = [await all('&state=finished&scraper=books'), await all('&state=stopped')]
    assert.ok(finished.length > 2 && stopped.length > 0 && finished.length + stopped.length <= ids.length)
  })

  it('resumes its runs after a restart, whether stopped or killed, but not those that were paused or cancelled', async () => {
    using own = temporaryFolder()
    let delayMs = 1000 // at two concurrent pages the run lasts for a minute, however slow this machine is
    await using slow = await startBooksSite({ products: 100, delayMs: () => delayMs })
    const flags = ['--rps', '0', '--allow-address', new URL(slow.url).host]
    const body = { scraper: 'books', args: { site: slow.url, details: true }, limits: { concurrency: 2 } }
    const clientOf = ({ url }: Served) => createClient({ url })
    let id: string
    let held: string
    {
      await using first = await startServe(flags, { cwd: own.path })
      const client = clientOf(first)
      ;({ id } = await client.startRun({ body }))
      ;({ id: held } = await client.startRun({ body }))
      await until('it works', async () => (await client.getRun({ params: { id } })).queue.completed > 3)
      await client.pauseRun({ params: { id: held } })
    }
    await using second = await startServe(flags, { cwd: own.path })
    const moved = async (served: Served) => (await clientOf(served).getRun({ params: { id } })).queue.completed
    const before = await moved(second)
    await until('it goes on', async () => (await moved(second)) > before)
    second.kill('SIGKILL')
    await second.result
    delayMs = 0
    await using third = await startServe(flags, { cwd: own.path })
    const look = async (run: string) => await clientOf(third).getRun({ params: { id: run } })
    await until('it is finished', async () => (await look(id)).state === 'finished')
    assert.equal((await look(id)).items.new, 100)
    assert.deepEqual([(await look(held)).isAlive, (await look(held)).isPaused], [false, true])
  })

  it('explains what is wrong with a request to each route, and never fails itself', async () => {
    for (const [name, one] of Object.entries(ENDPOINTS) as [string, Endpoint][]) {
      for (const wrong of wrongAsksOf(one)) {
        const { status, json, text } = await ask(one.method, wrong.path, wrong.body)
        assert.ok(status >= 400 && status < 500, `${name} ${wrong.path}: ${status} ${text}`)
        problemSchema.parse(json)
      }
    }
  })

  it('describes itself', async () => {
    const { json: document } = await ask('GET', '/openapi.json')
    assert.equal(document.openapi, '3.1.0')
    const described = Object.entries<object>(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    const known = Object.values(ENDPOINTS).map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`)
    assert.deepEqual(described.sort(), known.sort())
    const { schemas } = document.components
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, reference]) => reference!)
    assert.ok(references.length > 20, `${references.length} references`)
    for (const reference of references) assert.ok(schemas[reference.replace('#/components/schemas/', '')], reference)
    const { text } = await ask('GET', '/docs')
    for (const { path, summary } of Object.values(ENDPOINTS))
      assert.ok(text.includes(path) && text.includes(summary), path)
  })

  it('answers the typed client like any other', async () => {
    const client = createClient({ url: base })
    const { id } = await client.startRun({ body: { scraper: 'books', args: { site: site.url, pages: 1 } } })
    await until('it is finished', async () => (await client.getRun({ params: { id } })).state === 'finished')
    const items = await client.getItems({ params: { id }, query: { format: 'jsonl' } })
    assert.equal((await items.text()).trim().split('\n').length, 20)
    const wrong = client.getRun({ params: { id: '20200101_000000_none' } })
    await assert.rejects(wrong, (error) => error instanceof ApiError && error.problem.code === 'E_RUN_NOT_FOUND')
  })

  it('tries one page, lists a site, and refuses callers access to the private network', async () => {
    const client = createClient({ url: base })
    const page = new URL('catalogue/page-1.html', site.url).href
    const tried = await client.tryPage({ body: { scraper: 'books', url: page, args: { site: site.url } } })
    assert.deepEqual([tried.ok, tried.route, tried.items.length], [true, 'listing', 20])
    const inside = await client.tryPage({ body: { scraper: 'pages', url: 'http://127.0.0.1:1/' } })
    assert.equal(inside.error?.code, 'E_PRIVATE_ADDRESS')
    assert.ok((await client.mapSite({ body: { url: site.url } })).urls.length > 0)
  })

  it('fires a schedule on request, by the API and by the command', async () => {
    const client = createClient({ url: base })
    const body = {
      name: 'each morning',
      scraper: 'books',
      args: { site: site.url, pages: 1 },
      cron: 'daily',
      tz: 'Europe/Rome',
    }
    const { id, nextAt } = await client.createSchedule({ body })
    assert.match(nextAt!, /T0[45]:00:00/)
    assert.match((await ask('GET', '/metrics')).text, /sluice_schedule_interval_seconds\{scraper="books"\} 86400/)
    const run = await client.triggerSchedule({ params: { id } })
    await until(
      'its run is finished',
      async () => (await client.getRun({ params: { id: run.id } })).state === 'finished',
    )
    assert.equal((await sluice(['schedule', 'run-now', 'each morning'], { cwd: folder.path })).code, 0)
    const fires = async () => (await client.getSchedule({ params: { id } })).lastFires
    await until('the server has started another', async () => (await fires()).filter(({ runId }) => runId).length === 2)
    assert.equal((await client.nextTimes({ params: { id }, query: { n: 5 } })).times.length, 5)
    const twice = client.createSchedule({ body })
    await assert.rejects(twice, /there is a schedule named/)
    await client.deleteSchedule({ params: { id } })
    await assert.rejects(client.getSchedule({ params: { id } }), /E_SCHEDULE_NOT_FOUND/)
  })

  it('reports its health', async () => {
    const { scrapers, store, api } = await createClient({ url: base }).health()
    assert.ok(store.ok && api.requests > 0 && api.faults === 0)
    assert.ok(scrapers.some(({ name, successRate }) => name === 'books' && successRate! > 0.5))
    const { text } = await ask('GET', '/metrics')
    assert.match(text, /sluice_queue_tasks\{scraper="books",state="completed"\} [1-9]/)
    assert.match(text, /sluice_disk_free_bytes [1-9]/)
    assert.match(text, /sluice_run_last_success_timestamp_seconds\{scraper="books"\} [1-9]/)
    assert.equal((await ask('GET', '/readyz')).json.status, 'ready')
  })

  it('lets each key do what its role allows, and logs what was done', async () => {
    const created = await sluice(['key', 'create', 'reader', '--role', 'read', '--json'], { cwd: folder.path })
    const { key, id } = JSON.parse(created.stdout)
    const bearer = { authorization: `Bearer ${key}` }
    assert.equal((await ask('GET', '/v1/runs', undefined, bearer)).status, 200)
    const refused = await ask('POST', '/v1/runs', { scraper: 'books' }, bearer)
    assert.deepEqual([refused.status, refused.json.code], [403, 'E_ROLE'])
    assert.equal((await ask('GET', '/v1/runs', undefined, { authorization: 'Bearer slk_wrong' })).status, 401)
    assert.equal((await sluice(['key', 'revoke', id], { cwd: folder.path })).code, 0)
    const listed = (await sluice(['key', 'list', '--json'], { cwd: folder.path })).stdout
    assert.deepEqual(JSON.parse(listed).keys[0].isRevoked, true)
    assert.ok(!listed.includes(key))
  })

  it('does not mistake remote callers for local ones', async () => {
    const status = async (headers: Record<string, string>) => await statusOf('/v1/runs', headers)
    assert.equal(await status({}), 200)
    assert.equal(await status({ host: 'evil.example' }), 401)
    assert.equal(await status({ host: '127.evil.example:7700', origin: 'http://127.evil.example:7700' }), 401)
    assert.equal(await status({ 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' }), 401)
    assert.equal(await status({ origin: 'http://evil.example' }), 401)
    assert.equal(await status({ 'x-forwarded-for': '8.8.8.8' }), 401)
    assert.equal(await status({ origin: base, host: new URL(base).host }), 200)
    const inside = await startBooks({}, 'http://127.0.0.1:1/')
    await until('it failed', async () => (await ask('GET', inside.json.url)).json.errors.length > 0)
    assert.equal((await ask('GET', inside.json.url)).json.errors[0].code, 'E_PRIVATE_ADDRESS')
  })

  it('says which methods a path has, and rejects a malformed one', async () => {
    const wrong = await ask('PUT', '/v1/runs', {})
    assert.deepEqual([wrong.status, wrong.headers.get('allow')], [405, 'GET, POST'])
    const deep = await ask('DELETE', '/v1/runs/20260101_000000_aaaa')
    assert.deepEqual([deep.status, deep.headers.get('allow')], [405, 'GET'])
    assert.equal((await ask('GET', '/v1/runs/%zz')).json.code, 'E_REQUEST')
    for (const list of ['runs?', 'dlq?run=20260101_000000_aaaa&', 'audit?', 'jobs?', 'items?', 'events?'])
      assert.equal((await ask('GET', `/v1/${list}cursor=zzz`)).status, 400, list)
  })

  it('does not listen on a public address without a key', async () => {
    using own = temporaryFolder()
    for (const host of ['0.0.0.0', '127.example.org']) {
      const { code, stderr } = await sluice(['serve', '--host', host, '--port', '0'], { cwd: own.path })
      assert.equal(code, 2)
      assert.match(stderr, /can be reached by others, and there is no key/)
    }
  })
})

/** Reads until the server ends the stream. */
async function eventsOf(path: string, headers = {}): Promise<SeenEvent[]> {
  return eventsIn((await ask('GET', path, undefined, headers)).text)
}

/** Reads the first events, then disconnects. */
async function firstEventsOf(path: string, count: number): Promise<SeenEvent[]> {
  const hangUp = new AbortController()
  const { body } = await fetch(base + path, { signal: hangUp.signal })
  let text = ''
  for await (const chunk of body!.pipeThrough(new TextDecoderStream())) {
    text += chunk
    const events = eventsIn(text.slice(0, text.lastIndexOf('\n\n') + 2))
    if (events.length < count) continue
    hangUp.abort()
    return events
  }
  throw new Error(`only ${text}`)
}

interface SeenEvent {
  id: string
  type: string
  data: string
}

function eventsIn(text: string): SeenEvent[] {
  return text
    .split('\n\n')
    .map((block) => Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/s, 2))))
    .filter((fields) => 'data' in fields)
    .map(({ id, event, data }) => ({ id: id!, type: event!, data: data! }))
}

const NESTED = `${'{"args":'.repeat(50_000)}1${'}'.repeat(50_000)}`

/** An unknown parameter, invalid ids, and bodies of every wrong kind. */
function wrongAsksOf({ path, query, params, body }: Endpoint): { path: string; body?: unknown }[] {
  const real = path.replace(':id', '20260101_000000_aaaa')
  return [
    ...(query === undefined ? [] : [{ path: `${real}?nonsense=1` }]),
    ...(params === undefined
      ? []
      : [{ path: path.replace(':id', '..%2f..%2fetc') }, { path: path.replace(':id', '%00') }, { path: real }]),
    ...(body === undefined
      ? []
      : [null, 'x', [], { nonsense: true }, '{"a":', NESTED].map((wrong) => ({ path: real, body: wrong }))),
  ]
}
