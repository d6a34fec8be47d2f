/** The scalers: they fit KEDA's schema, aim at Deployments that exist, and ask for numbers that are really there. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client } from 'pg'
import { namesOf } from '../src/frontier/rabbit/names.ts'
import { METRICS } from '../src/observe/metrics-table.ts'
import { streamNames, WORKERS_GROUP } from '../src/protocol/streams.ts'
import { Fleet } from '../test/fleet.ts'
import { postgresForTests } from '../test/services/postgres.ts'
import { startBooksSite } from '../test/site/books.ts'
import { temporaryFolder } from '../test/sluice.ts'
import { metricsIn } from './alerts.ts'
import { documentsOf, type Json, textOf } from './checks.ts'
import { build, kustomizations, referenceProblems, schemaProblems } from './kubernetes-checks.ts'

const FOLDERS = kustomizations('deploy/keda')
const SECRETS = documentsOf(textOf('deploy/kubernetes/base/secrets.example.yaml'))
const DEPLOYMENTS = kustomizations('deploy/kubernetes')
  .flatMap((folder) => build(folder).documents)
  .filter(({ kind }) => kind === 'Deployment')
const all: Json[] = FOLDERS.flatMap((folder) => build(folder).documents)
const triggersOf = (type: string): Json[] =>
  all.flatMap(({ spec }) => spec.triggers ?? []).filter((trigger: Json) => trigger.type === type)

test('every file is listed and fits the schema of KEDA', async () => {
  assert.deepEqual(
    FOLDERS,
    ['postgres', 'prometheus', 'rabbitmq', 'redis-streams'].map((name) => `deploy/keda/${name}`),
  )
  for (const folder of FOLDERS) {
    const { documents, problems } = build(folder)
    assert.deepEqual(problems, [])
    for (const manifest of documents) assert.deepEqual(await schemaProblems(manifest), [])
    assert.deepEqual(referenceProblems(documents, SECRETS), [])
  }
  const [scaler] = build('deploy/keda/prometheus').documents
  assert.match(
    (await schemaProblems({ ...scaler, spec: { ...scaler.spec, minReplicas: 1 } })).join(),
    /not in the schema/,
  )
  const [login] = build('deploy/keda/postgres').documents
  login.spec.secretTargetRef[0].key = 'password'
  assert.match(referenceProblems([login], SECRETS).join(), /no secret sluice\/password/)
})

test('every scaler aims at a Deployment, and one that comes down to none can come back', () => {
  for (const folder of FOLDERS) {
    const { documents } = build(folder)
    const logins = documents.filter(({ kind }) => kind === 'TriggerAuthentication').map(({ metadata }) => metadata.name)
    for (const { spec, metadata } of documents.filter(({ kind }) => kind === 'ScaledObject')) {
      assert.ok(
        DEPLOYMENTS.some((one) => one.metadata.name === spec.scaleTargetRef.name),
        metadata.name,
      )
      assert.ok(spec.maxReplicaCount > spec.minReplicaCount)
      for (const { type, authenticationRef } of spec.triggers) {
        if (authenticationRef !== undefined) assert.ok(logins.includes(authenticationRef.name), metadata.name)
        // Metrics of workers, and messages that workers publish, are gone with the last of them.
        if (type === 'prometheus' || type === 'rabbitmq') assert.ok(spec.minReplicaCount >= 1, metadata.name)
      }
    }
  }
})

test('the metrics of the queries are exported, with the labels they ask for', () => {
  const queries: string[] = triggersOf('prometheus').map(({ metadata }) => metadata.query)
  assert.equal(queries.length, 2)
  for (const query of queries) {
    const names = metricsIn(query)
    assert.equal(names.length, 1, query)
    const spec = (METRICS as Record<string, { labels: readonly string[] }>)[names[0]!]
    for (const { 1: label } of query.matchAll(/(\w+)=~?"/g)) assert.ok(spec?.labels.includes(label!), query)
  }
})

test('browser workers come for scrapers that open pages in a browser', async () => {
  const [query] = triggersOf('prometheus').map(({ metadata }) => metadata.query as string)
  const names = /scraper=~"([^"]+)"/.exec(query!)![1]!.split('|')
  for (const name of names) {
    const { default: scraper } = await import(`../scrapers/jobs/${name}/${name}.ts`)
    const routes = Object.values<Json>(scraper.routes)
    assert.ok(
      routes.some(({ fetch }) => fetch === 'browser'),
      name,
    )
  }
})

test('the role for KEDA may read every table of the query, and nothing else', () => {
  const granted = /grant select on (.+) to keda/
    .exec(textOf('deploy/keda/postgres/authentication.yaml'))![1]!
    .split(', ')
  for (const { metadata } of triggersOf('postgresql'))
    assert.deepEqual([...new Set(metadata.query.match(/sluice\.\w+/g))].sort(), granted.sort())
})

test('the queues of RabbitMQ are those of the runs’ work, and not those of what failed', () => {
  const [{ metadata }] = triggersOf('rabbitmq') as [Json]
  const pattern = new RegExp(metadata.queueName)
  for (const run of ['default', '20261115_113501_x7k2']) {
    const names = namesOf(run)
    for (const lane of ['bulk', 'priority', 'manual', 'files']) assert.match(names.work(lane).queue, pattern)
    assert.doesNotMatch(names.failed.queue, pattern)
    assert.doesNotMatch(names.expired.queue, pattern)
  }
})

test('the streams and the group are those of the task protocol, for the type that the workers take', () => {
  const triggers = triggersOf('redis-streams')
  const { args } = DEPLOYMENTS.find(({ metadata }) => metadata.name === 'worker-type').spec.template.spec.containers[0]
  const type = args[args.indexOf('--type') + 1]
  // What nobody has read, and what is read and not yet done: a scaler that sees only one takes workers away from the other.
  for (const counted of ['lagCount', 'pendingEntriesCount'])
    assert.deepEqual(
      triggers.filter(({ metadata }) => metadata[counted] !== undefined).map(({ metadata }) => metadata.stream),
      streamNames().tasks(type),
    )
  assert.equal(triggers.length, 2 * streamNames().tasks(type).length)
  for (const { metadata } of triggers) assert.equal(metadata.consumerGroup, WORKERS_GROUP)
})

test('the query counts the pages of a real run, one for a run without any, and nothing once it is paused or another scraper’s', async () => {
  await using database = await postgresForTests()
  await using site = await startBooksSite({ products: 400 })
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path })
  const { run_id: runId } = await fleet.start('--site', site.url, '--arg', 'details=true', '--pages', '3')
  const stopped = await fleet.worker(runId).result
  const client = new Client(database.url)
  await client.connect()
  try {
    const [books, jobs] = triggersOf('postgresql').map(({ metadata }) => metadata.query as string) as [string, string]
    const ask = async (query: string) => {
      const { rows, fields } = await client.query({ text: query, rowMode: 'array' })
      assert.deepEqual([rows.length, fields.length], [1, 1])
      return Number(rows[0]![0])
    }
    await client.query(`update sluice.run_record set state = 'running' where id = $1`, [runId])
    const { pending, claimed } = (await fleet.stats(runId)) as { pending: number; claimed: number }
    assert.ok(pending > 20, `${pending} ${stopped.stderr}`)
    assert.equal(await ask(books), pending + claimed)
    assert.equal(await ask(jobs), 0)
    // All that is left are files now: those are for file workers, but somebody must end the run.
    await client.query(
      `update sluice.queue set class = 3 where run_id = (select run_id from sluice.run where name = $1)`,
      [runId],
    )
    assert.equal(await ask(books), 1)
    await client.query(`update sluice.run set pause_reason = 'blocked' where name = $1`, [runId])
    assert.equal(await ask(books), 0)
  } finally {
    await client.end()
  }
})
