/** Traces of complete runs, as a collector receives them: one trace from a list page to the stored item, across all processes. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Fleet } from './fleet.ts'
import { freePort } from './services/free-port.ts'
import { type SeenSpan, startCollector } from './services/otlp.ts'
import { postgresForTests } from './services/postgres.ts'
import { startBooksSite } from './site/books.ts'
import { sluice, temporaryFolder } from './sluice.ts'

const DETAILS = ['--arg', 'details=true', '--rps', '0']

function assertTraces(spans: readonly SeenSpan[], items: number): void {
  const byId = new Map(spans.map((span) => [span.spanId, span]))
  assert.equal(byId.size, spans.length, 'no span is sent twice')
  const stored = spans.filter(({ name }) => name === 'item stored')
  assert.equal(stored.length, items)
  for (const item of stored) {
    const product = byId.get(item.parentSpanId!)!
    const list = byId.get(product.parentSpanId!)!
    assert.notEqual(product.attributes['url.full'], list.attributes['url.full'])
    assert.equal(product.attributes['http.response.status_code'], 200)
    assert.deepEqual([product.traceId, list.traceId], [item.traceId, item.traceId])
    const steps = spans.filter(({ parentSpanId, name }) => parentSpanId === product.spanId && name !== 'item stored')
    assert.deepEqual(steps.map(({ name }) => name).sort(), ['commit', 'fetch', 'queue', 'read'])
  }
  const roots = spans.filter(({ parentSpanId }) => !parentSpanId)
  assert.deepEqual(new Set(spans.map(({ traceId }) => traceId)).size, roots.length, 'one root a trace')
  const lists = new Set(stored.map(({ parentSpanId }) => byId.get(parentSpanId!)!.parentSpanId))
  assert.deepEqual(new Set(roots.map(({ spanId }) => spanId)), lists, 'each list page begins a trace')
  const linked = roots.flatMap(({ links }) => (links ?? []).map((link) => byId.get(link.spanId)!.traceId))
  assert.equal(linked.length, roots.length - 1, 'and is linked to the one it was found on')
}

for (const processes of ['1', '2'])
  test(`puts a list page, the pages found on it and their stored items in one trace, with ${processes} process(es)`, async () => {
    await using collector = await startCollector()
    await using site = await startBooksSite({ products: 40 })
    using folder = temporaryFolder()
    const args = ['run', 'books', '--site', site.url, ...DETAILS, '--processes', processes, '--out', folder.path]
    const env = { SLUICE_OTEL: collector.url, OTEL_SERVICE_NAME: 'shop-watch' }
    const { code, stderr } = await sluice(args, { env })
    assert.equal(code, 0, stderr)
    assertTraces(collector.spans, 40)
    assert.equal(collector.spans[0]!.resource['service.name'], 'shop-watch')
  })

test('continues a trace in another fleet worker', async () => {
  await using collector = await startCollector()
  await using database = await postgresForTests()
  await using site = await startBooksSite({ products: 200, delayMs: 5 })
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path })
  const { run_id } = await fleet.start('--site', site.url, '--arg', 'details=true')
  const workers = [1, 2].map(() => fleet.worker(run_id, '--batch-size', '4', '--otel', collector.url))
  for (const { result } of workers) assert.equal((await result).code, 0, (await result).stderr)
  assertTraces(collector.spans, 200)
  const byId = new Map(collector.spans.map((span) => [span.spanId, span]))
  const handedOver = collector.spans.filter(({ name, parentSpanId, resource }) => {
    const parent = byId.get(parentSpanId!)
    return (
      name.startsWith('page ') && parent !== undefined && parent.resource['process.pid'] !== resource['process.pid']
    )
  })
  assert.ok(handedOver.length > 0, 'a page found by one worker was read by the other')
})

test('warns once if the collector is down', async () => {
  await using site = await startBooksSite({ products: 40 })
  using folder = temporaryFolder()
  const otel = `http://127.0.0.1:${await freePort()}`
  const { code, stderr } = await sluice([
    'run',
    'books',
    '--site',
    site.url,
    ...DETAILS,
    '--otel',
    otel,
    '--out',
    folder.path,
  ])
  assert.equal(code, 0, stderr)
  const log = readFileSync(join(folder.path, 'books', 'latest', 'log.jsonl'), 'utf8')
  assert.equal(log.match(/traces cannot be sent/g)?.length, 1)
})

test('a share of 0 sends nothing', async () => {
  await using collector = await startCollector()
  await using site = await startBooksSite({ products: 20 })
  using folder = temporaryFolder()
  const args = [
    'run',
    'books',
    '--site',
    site.url,
    ...DETAILS,
    '--otel',
    collector.url,
    '--otel-sample',
    '0',
    '--out',
    folder.path,
  ]
  const { code, stderr } = await sluice(args)
  assert.equal(code, 0, stderr)
  assert.equal(collector.spans.length, 0)
})

test('loads no package without --otel; with it, names a missing one and how to install it', async () => {
  await using site = await startBooksSite({ products: 20 })
  using folder = temporaryFolder()
  const hook = `import { registerHooks } from 'node:module'
    registerHooks({ resolve: (name, context, next) => {
      if (name.startsWith('@opentelemetry/')) throw Object.assign(new Error(name), { code: 'ERR_MODULE_NOT_FOUND' })
      return next(name, context)
    } })`
  const env = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(hook)}` }
  const args = ['run', 'books', '--site', site.url, ...DETAILS, '--out', folder.path]
  const off = await sluice(args, { env })
  assert.equal(off.code, 0, off.stderr)
  const on = await sluice([...args, '--otel', 'http://127.0.0.1:4318'], { env })
  assert.notEqual(on.code, 0)
  assert.match(
    on.stderr,
    /E_PACKAGE_MISSING +traces need the packages @opentelemetry\/api [\s\S]*npm install @opentelemetry\/api@/,
  )
})
