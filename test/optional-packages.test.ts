/** Hides each optional package: code that needs it says so, and names the command that installs it. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { test } from 'node:test'
import { createEventBus } from '../src/core/events.ts'
import { temporaryFolder } from './sluice.ts'

const { peerDependencies, peerDependenciesMeta, devDependencies } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as Record<string, Record<string, string>>

registerHooks({
  resolve(name, context, next) {
    if (!Object.hasOwn(peerDependencies!, name)) return next(name, context)
    throw Object.assign(new Error(`Cannot find package '${name}'`), { code: 'ERR_MODULE_NOT_FOUND' })
  },
})

const never = new AbortController().signal
const OTEL = [
  '@opentelemetry/api',
  '@opentelemetry/sdk-trace',
  '@opentelemetry/resources',
  '@opentelemetry/exporter-trace-otlp-http',
]
const S3 = ['@aws-sdk/client-s3', '@aws-sdk/lib-storage']

const USES: readonly { what: RegExp; names: readonly string[]; use: () => Promise<unknown> }[] = [
  { what: /^PostgreSQL needs/, names: ['pg'], use: () => frontier('postgres://127.0.0.1:1/none') },
  { what: /^Redis needs/, names: ['ioredis'], use: () => frontier('redis://127.0.0.1:1/0') },
  { what: /^RabbitMQ needs/, names: ['rabbitmq-client', 'ioredis'], use: () => frontier('amqp://127.0.0.1:1/none') },
  {
    what: /^storage in S3 needs/,
    names: S3,
    use: async () => (await import('../src/files/open-store.ts')).openFileStore('s3://bucket/'),
  },
  { what: /^a browser needs/, names: ['puppeteer-core'], use: browse },
  {
    what: /^the API server needs/,
    names: ['fastify'],
    use: () => import('../src/server/api/server.ts'),
  },
  {
    what: /^metrics need/,
    names: ['prom-client'],
    use: async () =>
      (await import('../src/observe/metrics.ts')).openMetrics({ bus: createEventBus(), version: '1' } as never),
  },
  { what: /^Parquet needs/, names: ['hyparquet-writer'], use: () => import('../src/sinks/parquet.ts') },
  {
    what: /^thumbnails need/,
    names: ['sharp'],
    use: async () => step((await import('../src/files/thumbnail.ts')).thumbnail()),
  },
  {
    what: /^the text of PDFs needs/,
    names: ['unpdf'],
    use: async () => step((await import('../src/files/pdf-text.ts')).pdfText()),
  },
  {
    what: /^the identity tls needs/,
    names: ['wreq-js'],
    use: async () => (await import('../src/fetch/http/tls-library.ts')).loadTlsLibrary(),
  },
  {
    what: /^traces need/,
    names: OTEL,
    use: async () => (await import('../src/observe/tracing.ts')).openTracing({} as never),
  },
  {
    what: /^the conformance suite of engines needs/,
    names: ['fast-check'],
    use: async () => {
      const { frontierChecks } = await import('../src/testing.ts')
      const { openMemoryFrontier } = await import('../src/frontier/memory/engine.ts')
      await frontierChecks.at(-1)!.run(async ({ now }) => openMemoryFrontier({ now }))
    },
  },
]

async function frontier(url: string): Promise<unknown> {
  const { openFrontier } = await import('../src/frontier/open.ts')
  return await openFrontier(url, { runId: 'none' } as never)
}

async function browse(): Promise<unknown> {
  const { launchChromium } = await import('../src/fetch/browser/launch.ts')
  using folder = temporaryFolder()
  const settings = { executable: process.execPath } as never
  return await launchChromium({ settings, closedProxy: 'http://127.0.0.1:1', folder: folder.path })
}

function step(one: { run: (file: never, put: never) => Promise<unknown> }): Promise<unknown> {
  return one.run({ path: '/none', bytes: 1, signal: never } as never, (() => {}) as never)
}

for (const { what, names, use } of USES)
  test(`without ${names.join(' and ')}`, async () => {
    await assert.rejects(use(), ({ code, message, fix }: Error & { code: string; fix: string }) => {
      assert.equal(code, 'E_PACKAGE_MISSING')
      assert.match(message, what)
      assert.ok(
        message.endsWith(`${names.join(' and ')}, which ${names.length > 1 ? 'are' : 'is'} not installed`),
        message,
      )
      assert.equal(fix, `npm install ${names.map((name) => `${name}@${devDependencies![name]}`).join(' ')}`)
      return true
    })
  })

test('all of them are optional, installed for developers, and tested', () => {
  const names = Object.keys(peerDependencies!)
  assert.deepEqual(Object.keys(peerDependenciesMeta!), names)
  for (const name of names) assert.equal(peerDependencies![name], `^${devDependencies![name]}`, name)
  assert.deepEqual([...new Set(USES.flatMap((one) => one.names))].sort(), [...names].sort())
})
