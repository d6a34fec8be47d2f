/** The servers that the other tests rely on: they start, are isolated from each other, and are gone afterwards. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { temporaryFolder } from '../sluice.ts'
import { findProgram, ServiceMissing } from './find-program.ts'
import { isAnswered } from './free-port.ts'
import { OwnedServer } from './owned-server.ts'
import { pgbouncerForTests } from './pgbouncer.ts'
import { postgresForTests, startPostgres } from './postgres.ts'
import { redisForTests, startRedis } from './redis.ts'
import { startShared } from './shared.ts'
import { socksForTests } from './socks.ts'

const NOWHERE = { name: 'Nowhere', program: 'usr/bin/no-such-server', package: 'no-such-server', urlVariable: 'NO_URL' }

async function query(url: string, sql: string): Promise<unknown[][]> {
  const client = new Client(url)
  await client.connect()
  try {
    return (await client.query({ text: sql, rowMode: 'array' })).rows
  } finally {
    await client.end()
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function until(isTrue: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await isTrue())) await delay(10)
}

test('a server dies with its owner, even if that is killed with -9', async () => {
  const file = fileURLToPath(new URL('owner-child.test-kit.ts', import.meta.url))
  const owner = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'inherit'] })
  const { url, pid } = JSON.parse(String((await once(owner.stdout, 'data'))[0])) as { url: string; pid: number }
  const data = String((await query(url, 'show data_directory'))[0]![0])
  owner.kill('SIGKILL')
  await once(owner, 'exit')
  await until(() => !isAlive(pid) && !existsSync(data))
  assert.equal(await isAnswered(Number(new URL(url).port)), false)
})

test('leaves no process and no folder behind when it is disposed of, even twice', async () => {
  const server = await startPostgres()
  const { pid } = server
  const data = String((await query(server.url, 'show data_directory'))[0]![0])
  await server[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
  assert.equal(isAlive(pid!), false)
  assert.equal(existsSync(data), false)
})

test('stops and restarts a server on the same port, with its data', async () => {
  await using server = await startPostgres({ fsync: true })
  assert.deepEqual(await query(server.url, 'show fsync'), [['on']])
  await using database = await server.createDatabase()
  await query(database.url, 'create table kept as select 42 as answer')
  const before = server.pid
  await server.stop('immediate')
  assert.equal(server.pid, undefined)
  await assert.rejects(query(database.url, 'select 1'))
  await server.start()
  assert.notEqual(server.pid, before)
  await server.restart()
  assert.deepEqual(await query(database.url, 'select answer from kept'), [[42]])
})

test('gives two at once their own ports and data', async () => {
  const [one, two] = await Promise.all([startPostgres(), startPostgres()])
  await using _one = one
  await using _two = two
  assert.notEqual(one.port, two.port)
  await query(one.url, 'create table mine()')
  assert.deepEqual(await query(two.url, "select to_regclass('mine')"), [[null]])
})

test('gives each test its own empty database', async () => {
  await using one = await postgresForTests()
  {
    await using two = await postgresForTests()
    assert.notEqual(one.name, two.name)
    await query(one.url, 'create table mine()')
    assert.deepEqual(await query(two.url, "select to_regclass('mine')"), [[null]])
  }
  assert.deepEqual(await query(one.url, "select count(*)::int from pg_class where relname = 'mine'"), [[1]])
})

test('the pooler gives every transaction whichever connection is free', async () => {
  await using database = await postgresForTests()
  await using pooler = await pgbouncerForTests(database.url, { poolSize: 2 })
  const [one, two] = [new Client(pooler.url), new Client(pooler.url)]
  await Promise.all([one.connect(), two.connect()])
  const backendOf = async (client: Client) => (await client.query('select pg_backend_pid() as pid')).rows[0].pid
  const first = await backendOf(one)
  await two.query('begin')
  assert.equal(await backendOf(two), first, 'not in transaction mode')
  assert.notEqual(await backendOf(one), first)
  await two.query('commit')
  await Promise.all([one.end(), two.end()])
})

test('a Redis that crashed has its writes back', async () => {
  await using server = await startRedis()
  const given = process.env['SLUICE_TEST_REDIS_URL']
  process.env['SLUICE_TEST_REDIS_URL'] = server.url
  try {
    await using one = await redisForTests()
    await using two = await redisForTests()
    assert.deepEqual([one.url, two.url].map((url) => new URL(url).pathname), ['/1', '/2']) // biome-ignore format: one line reads better
    await server.stop('SIGKILL')
    await server.start()
    await using three = await redisForTests()
    assert.equal(new URL(three.url).pathname, '/3') // the claims on 1 and 2 are still known
  } finally {
    if (given === undefined) delete process.env['SLUICE_TEST_REDIS_URL']
    else process.env['SLUICE_TEST_REDIS_URL'] = given
  }
})

test('a proxy is up when it is returned', async () => {
  await using proxy = await socksForTests()
  assert.equal(await isAnswered(proxy.port), true)
  await proxy.stop()
  assert.equal(await isAnswered(proxy.port), false)
})

test('fails with the output of a server that does not start', async () => {
  await using server = new OwnedServer('sh')
  const args = ['-c', 'echo "cannot read my mind"; exit 3']
  await assert.rejects(
    server.start({ file: 'sh', args, isReady: () => false }),
    /sh did not start: it ended with 3\ncannot read my mind/,
  )
  await assert.rejects(server.start({ file: '/no/such/program', args: [], isReady: () => false }), /ENOENT/)
})

test('says what was tried and what to install if a service is missing', async () => {
  const path = process.env['PATH']
  process.env['PATH'] = '/no/such/folder' // a machine without apt-get
  try {
    await assert.rejects(findProgram(NOWHERE), (error: Error) => {
      assert.ok(error instanceof ServiceMissing)
      assert.match(error.message, /^Nowhere is missing/)
      assert.match(error.message, /not on this machine: no \/usr\/bin\/no-such-server/)
      assert.match(error.message, /could not be unpacked into .*no-such-server: .*not a Debian machine/)
      assert.match(error.message, /apt-get install no-such-server\), or name a running one in NO_URL\.$/)
      return true
    })
  } finally {
    process.env['PATH'] = path
  }
})

test('fails without a service; a fast run continues and names the skipped files', async () => {
  using folder = temporaryFolder()
  const files = ['needs.test.ts', 'other.test.ts'].map((name) => join(folder.path, name))
  writeFileSync(files[0]!, `import { x } from '../services/nowhere.ts'`)
  writeFileSync(files[1]!, `import { x } from '../services/elsewhere.ts'`)
  const service = { ...NOWHERE, program: 'usr/bin/no-such-server-either' }
  process.env['SLUICE_TEST_NO_DOWNLOAD'] = '1'
  try {
    const services = { 'nowhere.ts': { service } }
    await assert.rejects(startShared(files, { mayMiss: false, services }), ServiceMissing)
    await using shared = await startShared(files, { mayMiss: true, services })
    assert.deepEqual(shared.missing.map((entry) => entry.files), [[files[0]]]) // biome-ignore format: one line reads better
    assert.match(shared.missing[0]!.why, /Nowhere is missing.*nothing is downloaded here/s)
  } finally {
    delete process.env['SLUICE_TEST_NO_DOWNLOAD']
  }
})
