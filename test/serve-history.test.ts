/** History as callers use it: real runs of a shop that changes, a real server, and a server that is killed. */
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, it } from 'node:test'
import { createClient } from '../src/server/api/client.ts'
import { until } from './fleet.ts'
import { postgresForTests } from './services/postgres.ts'
import { type BooksSite, podOf, startBooksSite } from './site/books.ts'
import { type SluiceProcess, sluice, startSluice, temporaryFolder } from './sluice.ts'

type Client = ReturnType<typeof createClient>

/** How the shop currently changes its listings. */
let edit = (_path: string, html: string): string | number => html
let site: BooksSite
let folder: ReturnType<typeof temporaryFolder>
let server: SluiceProcess
let client: Client
let base: string

async function serve(cwd: string, ...more: string[]): Promise<{ server: SluiceProcess; url: string }> {
  const address = new URL(site.url).host
  const started = startSluice(['serve', '--port', '0', '--rps', '0', '--allow-address', address, ...more], { cwd })
  let printed = ''
  started.child.stdout!.on('data', (text) => {
    printed += text
  })
  await until('it serves', () => /serving (http:\S+)\/v1/.test(printed))
  return { server: started, url: /serving (http:\S+)\/v1/.exec(printed)![1]! }
}

before(async () => {
  site = await startBooksSite({ products: 60, edit: (path, html) => edit(path, html) })
  folder = temporaryFolder()
  const started = await serve(folder.path)
  server = started.server
  base = started.url
  client = createClient({ url: base })
})

after(async () => {
  server.child.kill('SIGTERM')
  assert.equal((await server.result).code, 0)
  await site[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

const keyOf = (id: number) => new URL(podOf(id).path, site.url).href

async function runOnce(state: 'finished' | 'failed' = 'finished'): Promise<string> {
  const { id } = await client.startRun({ body: { scraper: 'books', args: { site: site.url }, limits: { retries: 0 } } })
  await until(`it is ${state}`, async () => (await client.getRun({ params: { id } })).state === state)
  await until('history has read it', () => endOf(folder.path, id) !== undefined)
  return id
}

/** How history judged a run; undefined until it has read its end. */
function endOf(cwd: string, runId: string): { items: number; is_complete: number; why: string | null } | undefined {
  return ask(cwd, 'select items, is_complete, why from ingest_run where run_id = ? and is_done = 1', runId)
}

function ask<T>(cwd: string, sql: string, ...values: string[]): T | undefined {
  using db = new DatabaseSync(join(cwd, '.sluice', 'sluice.db'), { readOnly: true })
  return db.prepare(sql).get(...values) as T | undefined
}

const withoutBook = (html: string, id: number) => {
  const pods = html.split(/(?=<li class="col-xs-6)/)
  const rest = pods.filter((pod) => !pod.includes(podOf(id).path.split('/')[2]!))
  assert.equal(rest.length, pods.length - 1)
  return rest.join('')
}

/** The run folder of a small run, with many more items in it. */
function manyItems(cwd: string, count: number): string {
  const from = join(folder.path, 'runs', 'books')
  const id = readdirSync(from).find((name) => /^\d{8}_/.test(name))!
  const to = join(cwd, 'runs', 'books', id)
  mkdirSync(to, { recursive: true })
  for (const name of ['run.json', 'items.jsonl']) cpSync(join(from, id, name), join(to, name))
  const [line] = readFileSync(join(to, 'items.jsonl'), 'utf8').split('\n')
  const item = JSON.parse(line!)
  const lines = Array.from({ length: count }, (_, i) => `${JSON.stringify({ ...item, url: `${item.url}?${i}` })}\n`)
  writeFileSync(join(to, 'items.jsonl'), lines.join(''))
  return id
}

describe('history', () => {
  it('knows what changed in the shop and what is gone, and ignores failed runs', async () => {
    await client.createWebhook({ body: { name: 'shop', url: `${site.url}hook`, events: ['item.*'] } })
    const first = await runOnce()
    const { price } = podOf(1)
    edit = (path, html) => {
      if (!path.endsWith('page-1.html')) return html
      assert.ok(html.includes(price))
      return withoutBook(html.replace(price, '£1.23'), 2)
    }
    const second = await runOnce()
    edit = (path, html) => (path.endsWith('page-2.html') ? 404 : html.replace(price, '£2.34'))
    const failed = await runOnce('failed')
    assert.deepEqual({ ...endOf(folder.path, failed)!, why: '' }, { items: 40, is_complete: 0, why: '' })

    const priced = await client.getItemHistory({ params: { scraper: 'books', key: keyOf(1) } })
    assert.deepEqual(
      priced.changes.map(({ kind, runId }) => [kind, runId]),
      [
        ['new', first],
        ['changed', second],
        ['changed', failed],
      ],
    )
    assert.deepEqual(
      priced.fields['price']!.map(({ value }) => value),
      [price, '£1.23', '£2.34'],
    )
    const gone = await client.getItemHistory({ params: { scraper: 'books', key: keyOf(2) } })
    assert.deepEqual(
      gone.changes.map(({ kind }) => kind),
      ['new', 'gone', 'back'],
    )
    const listed = async (query: object) =>
      (await client.listKnownItems({ query: { scraper: 'books', ...query } })).data
    assert.equal((await listed({ status: 'active', limit: 500 })).length, 60, 'the failed run made nothing gone')
    assert.deepEqual(
      (await listed({ q: '£2.34' })).map(({ key }) => key),
      [keyOf(1)],
    )

    const diff = await client.diffRuns({ params: { id: first, other: second } })
    assert.deepEqual(diff.totals, { added: 0, removed: 1, changed: 1, unchanged: 58, repeated: 0 })
    assert.deepEqual(
      diff.data.map(({ kind, key }) => [kind, key]),
      [
        ['changed', keyOf(1)],
        ['removed', keyOf(2)],
      ],
    )
    assert.deepEqual(Object.keys(diff.data[0]!.fields!).sort(), ['price', 'price_numeric'])
    const rest = await client.diffRuns({ params: { id: first, other: second }, query: { limit: 1, cursor: '1' } })
    assert.deepEqual([rest.data.map(({ kind }) => kind), rest.next], [['removed'], null])
    const { items, latencyMs } = await client.getIngest({})
    assert.deepEqual([items, latencyMs.count], [159, 159])
    assert.ok(latencyMs.p50 > 0 && latencyMs.p99 >= latencyMs.p50, `from page to history: ${JSON.stringify(latencyMs)}`)
  })

  it('has notified subscribers, in the same transaction', () => {
    using db = new DatabaseSync(join(folder.path, '.sluice', 'sluice.db'), { readOnly: true })
    const told = db.prepare(`select type, count(*) as count from event where type like 'item.%' group by type`).all()
    assert.deepEqual(
      told.map(({ type, count }) => `${count} ${type}`).sort(),
      ['1 item.gone', '1 item.new', '2 item.changed'],
      'none for the first run; one came back',
    )
  })

  it('is available on the command line', async () => {
    const shown = await sluice(['history', 'books', keyOf(1)], { cwd: folder.path })
    assert.match(shown.stdout, /changed {2}run .*\n {4}price: £\d.* → £1\.23\n/)
    const prices = await sluice(['history', 'books', keyOf(1), '--field', 'price'], { cwd: folder.path })
    assert.match(prices.stdout, /Z {2}£1\.23\n.*Z {2}£2\.34\n$/)
    const unknown = await sluice(['history', 'books', 'nothing'], { cwd: folder.path })
    assert.deepEqual([unknown.code, /E_ITEM_NOT_FOUND/.test(unknown.stderr)], [2, true])
  })

  it('pages through the items of a run from any position it returned, and from no other', async () => {
    const [run] = (await client.listRuns({ query: { scraper: 'books' } })).data
    const page = async (query: string) => {
      const response = await fetch(`${base}/v1/runs/${run!.id}/items?${query}`)
      return { status: response.status, body: (await response.json()) as { data: object[]; next: string | null } }
    }
    const first = (await page('limit=30')).body
    const second = (await page(`limit=30&cursor=${first.next}`)).body
    assert.deepEqual([first.data.length, second.data.length, second.next], [30, 10, null])
    assert.equal(new Set([...first.data, ...second.data].map((item) => JSON.stringify(item))).size, 40)
    for (const wrong of [String(Number(first.next) + 1), '-1', 'x', '99999999'])
      assert.equal((await page(`cursor=${wrong}`)).status, 400, wrong)
  })

  it('reads the runs of a fleet from its database', async () => {
    using other = temporaryFolder()
    await using database = await postgresForTests()
    edit = (_, html) => html
    const fleet = await serve(other.path, '--frontier', database.url, '--workers', '1')
    const asked = createClient({ url: fleet.url })
    const { id } = await asked.startRun({ body: { scraper: 'books', args: { site: site.url } } })
    const known = async () => (await asked.listKnownItems({ query: { limit: 500 } })).data
    await until('all of it is known', async () => (await known()).length === 60)
    assert.ok((await known()).every(({ timesSeen, lastRunId }) => timesSeen === 1 && lastRunId === id))
    await until('its end is known', async () => (await asked.getRun({ params: { id } })).state === 'finished')
    const items = async (cursor: string) => {
      const response = await fetch(`${fleet.url}/v1/runs/${id}/items?limit=40${cursor}`)
      return (await response.json()) as { data: object[]; next: string | null }
    }
    const first = await items('')
    const second = await items(`&cursor=${first.next}`)
    assert.deepEqual([first.data.length, second.data.length, second.next], [40, 20, null])
    assert.deepEqual((await asked.diffRuns({ params: { id, other: id } })).totals.unchanged, 60)
    fleet.server.child.kill('SIGTERM')
    assert.equal((await fleet.server.result).code, 0)
  })

  it('counts each item once, however often the server is killed while it reads', async () => {
    using other = temporaryFolder()
    const run = manyItems(other.path, 12_000)
    const read = () => {
      try {
        return ask<{ items: number }>(other.path, 'select items from ingest_run')?.items ?? 0
      } catch {
        return 0 // the tables do not exist yet
      }
    }
    for (const share of [1_000, 4_000]) {
      const killed = await serve(other.path)
      await until('it is in the middle', () => read() >= share)
      killed.server.child.kill('SIGKILL')
      await killed.server.result
      assert.ok(read() < 12_000, 'it was killed too late to tell anything')
    }
    const last = await serve(other.path)
    await until('it is through', () => endOf(other.path, run) !== undefined)
    last.server.child.kill('SIGTERM')
    await last.server.result
    const known = ask(
      other.path,
      `select (select count(*) from entity where seen = 1) as once, (select count(*) from entity) as items,
         (select count(*) from entity_change) as changes, (select items from ingest_run) as read`,
    )
    assert.deepEqual({ ...(known as object) }, { once: 12_000, items: 12_000, changes: 12_000, read: 12_000 })
  })
})
