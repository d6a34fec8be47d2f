/** The image, compose and stack files: they fit the specification, and name only what exists. No container engine is needed. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { temporaryFolder } from '../test/sluice.ts'
import {
  commandProblems,
  graceProblems,
  imageProblems,
  type Json,
  partProblems,
  ROOT,
  textOf,
  variableProblems,
} from './checks.ts'
import {
  isOurs,
  isWorker,
  readCompose,
  referenceProblems,
  schemaProblems,
  serviceProblems,
  stackProblems,
  workersIn,
} from './compose-checks.ts'

const run = promisify(execFile)
const COMPOSE = readCompose('docker-compose.yml')
const STACK = readCompose('docker-stack.yml')
const SCALE = readCompose('docker-compose.scale.yml')

/** The services of the override as they are on top of what they extend. */
function scaled(): [string, Json][] {
  return Object.entries<Json>(SCALE.services).map(([name, { extends: base, deploy, ...own }]) => {
    const under = COMPOSE.services[base?.service ?? name]
    return [name, { ...under, ...own, deploy: { ...under.deploy, ...deploy } }]
  })
}

async function problemsOf(services: Iterable<[string, Json]>): Promise<string[]> {
  const all: string[] = []
  for (const [name, service] of services)
    all.push(...(await serviceProblems(service)).map((text) => `${name}: ${text}`))
  return all
}

for (const [name, file] of Object.entries({ COMPOSE, STACK, SCALE })) {
  test(`${name.toLowerCase()}: fits the compose specification`, () => assert.deepEqual(schemaProblems(file), []))
}

test('the specification refuses what is none of it', () => {
  const [, worker] = Object.entries<Json>(COMPOSE.services).find(([name]) => name === 'worker')!
  assert.notDeepEqual(schemaProblems({ services: { worker: { ...worker, replica: 3 } } }), [])
  assert.notDeepEqual(schemaProblems({ services: { worker: { ...worker, command: 5 } } }), [])
})

test('every service of every file is hardened and limited, and names what exists', async () => {
  assert.deepEqual(await problemsOf(Object.entries(COMPOSE.services)), [])
  assert.deepEqual(await problemsOf(Object.entries(STACK.services)), [])
  assert.deepEqual(await problemsOf(scaled()), [])
})

test('every volume, network, secret and server that a service names is declared, and waited for in health', () => {
  assert.deepEqual(referenceProblems(COMPOSE), [])
  assert.deepEqual(referenceProblems(STACK), [])
  const { networks: _, ...without } = STACK
  assert.equal(referenceProblems(without).length, Object.keys(STACK.services).length)
})

test('what is wrong with a service is seen', async () => {
  const { worker } = COMPOSE.services
  const cases: [Json, RegExp][] = [
    [{ container_name: 'w1' }, /fixed name/],
    [{ hostname: 'w1' }, /fixed host name/],
    [{ ports: ['9090:9090'] }, /port of the host/],
    [{ image: 'redis:latest' }, /not pinned/],
    [{ image: 'sluice:0.1.0-browser' }, /no target/],
    [{ image: 'sluice-gpu:0.1.0' }, /no target/],
    [{ read_only: false }, /can be written/],
    [{ cap_drop: [] }, /capabilities/],
    [{ deploy: {} }, /limit of memory/],
    [{ logging: {} }, /limit of logs/],
    [{ volumes: ['./nowhere:/x'] }, /does not exist/],
    [{ stop_grace_period: '20s' }, /too short/],
    [{ command: ['worker', '--forevr'] }, /does not take --forevr/],
    [{ environment: { SLUICE_FRONTEIR: 'x' } }, /no option/],
    [{ environment: { SLUICE_METRICS: '0.0.0.0:1' } }, /metrics on/],
    [{ tmpfs: ['/tmp'] }, /memory without a size/],
    [{ environment: {} }, /too little to grow/],
    [{ volumes: [{ type: 'tmpfs', target: '/tmp' }] }, /memory without a size/],
    [{ tmpfs: ['/tmp:size=600m'] }, /full of files/],
    [{ command: ['worker', '--only', 'files', '--file-workers', '2', '--file-max', '1GiB'] }, /do not fit/],
    [{ command: ['worker'] }, /do not fit/],
  ]
  for (const [change, expected] of cases)
    assert.match((await serviceProblems({ ...worker, ...change })).join(), expected)
})

test('the stack says nothing that Swarm would leave out, and no update of it waits for itself', () => {
  for (const [name, service] of Object.entries<Json>(STACK.services)) assert.deepEqual(stackProblems(service), [], name)
  const { api } = STACK.services
  for (const ignored of [
    { tmpfs: ['/tmp'] },
    { shm_size: '1g' },
    { security_opt: ['no-new-privileges:true'] },
    { restart: 'always' },
    { build: '.' },
    { container_name: 'api' },
    { depends_on: { worker: { condition: 'service_healthy' } } },
  ])
    assert.match(stackProblems({ ...api, ...ignored }).join(), /^\w+ means nothing to Swarm$/)
  const deploy = { ...api.deploy, placement: { max_replicas_per_node: 1 } }
  assert.match(stackProblems({ ...api, deploy }).join(), /an update would wait/)
})

test('pages, files and browsers have workers in every region of the stack, and in the compose file', () => {
  assert.deepEqual(partProblems(workersIn(COMPOSE)), [])
  assert.deepEqual(partProblems(workersIn(STACK)), [])
  const { 'worker-eu': eu, ...others } = STACK.services
  const pagesOnly = { ...eu, command: [...eu.command, '--only', 'pages'] }
  assert.deepEqual(partProblems(workersIn({ services: { ...others, eu: pagesOnly } })), [
    'nobody does files in region eu',
  ])
  const { 'file-worker': _, ...without } = COMPOSE.services
  assert.match(partProblems(workersIn({ services: without })).join(), /files in runs without a region/)
})

test('the numbers of .env are those of every later start, with or without the file for workers by scraper', () => {
  const numbers = (variables: Record<string, string>, file = 'docker-compose.yml') =>
    Object.entries<Json>(readCompose(file, variables).services)
      .filter(([, { deploy }]) => deploy?.replicas !== undefined)
      .map(([name, { deploy }]) => `${name}=${deploy.replicas}`)
  assert.deepEqual(numbers({}), ['sluice=1', 'worker=2', 'file-worker=1', 'browser-worker=1'])
  const told = { ALL_IN_ONE: '0', WORKERS: '4', FILE_WORKERS: '3', BROWSER_WORKERS: '2', WORKERS_JOBS: '20' }
  assert.deepEqual(numbers(told), ['sluice=0', 'worker=4', 'file-worker=3', 'browser-worker=2'])
  const scaled = ['worker=4', 'worker-books=4', 'worker-jobs=20', 'worker-pages=2', 'browser-worker=2', 'file-worker=3']
  assert.deepEqual(numbers(told, 'docker-compose.scale.yml'), scaled)
  assert.notDeepEqual(schemaProblems(readCompose('docker-compose.yml', { WORKERS: 'many' })), [])
})

test('files on their way lie on disk: who takes files has a nameless volume for them, and no limit of its own', () => {
  for (const name of ['file-worker', 'browser-worker']) {
    const { volumes, tmpfs, command } = COMPOSE.services[name]
    assert.ok(volumes.includes('/srv/sluice/runs'), name)
    assert.doesNotMatch([...tmpfs, ...command].join(' '), /sluice\/runs|--file-max/, name)
  }
})

test('each image is built by one service, and ours are pulled from nowhere', () => {
  const ours = Object.values<Json>(COMPOSE.services).filter(isOurs)
  assert.deepEqual(
    ours.filter(({ build }) => build !== undefined).map(({ image, build }) => [image, build.target]),
    [
      ['sluice:0.1.0', 'slim'],
      ['sluice-browser:0.1.0', 'browser'],
    ],
  )
  for (const { image, pull_policy } of ours) assert.equal(pull_policy, 'never', image)
})

test('commands, variables, images and times have checks that can fail', async () => {
  assert.deepEqual(await commandProblems(['serve', '--host', '0.0.0.0']), [])
  assert.match((await commandProblems(['srve'])).join(), /no command/)
  assert.match((await commandProblems(['serve', '--host'])).join(), /argument missing/)
  assert.deepEqual(variableProblems(['SLUICE_STORE_FILE', 'SLUICE_API_KEY_FILE', 'PATH']), [])
  assert.equal(variableProblems(['SLUICE_STORE_PATH']).length, 1)
  for (const image of ['redis', 'redis:7', 'redis:7-alpine', 'x/y:latest'])
    assert.equal(imageProblems(image, []).length, 1)
  assert.deepEqual(graceProblems(45_000, ['worker', '--drain-timeout', '40s'], {}), [])
  assert.equal(graceProblems(45_000, ['worker'], { SLUICE_DRAIN_TIMEOUT: '1m' }).length, 1)
})

test('without a profile there is one server, on loopback, with a key that is made', () => {
  const plain = Object.entries<Json>(COMPOSE.services).filter(([, { profiles }]) => profiles === undefined)
  assert.deepEqual(plain.map(([name]) => name).sort(), ['secrets', 'sluice'])
  const { sluice } = COMPOSE.services
  assert.ok(sluice.environment.SLUICE_API_KEY_FILE)
  for (const { ports = [] } of Object.values<Json>(COMPOSE.services))
    for (const port of ports) assert.match(port, /^127\.0\.0\.1:/)
})

test('no file has a password, and workers do not see the key of the API', () => {
  for (const file of [COMPOSE, STACK, SCALE])
    for (const [name, service] of Object.entries<Json>(file.services)) {
      for (const variable of Object.keys(service.environment ?? {}))
        assert.ok(!/PASSWORD|SECRET|_KEY$/.test(variable) || variable.endsWith('_FILE'), `${name}: ${variable}`)
      const given = JSON.stringify([service.volumes, service.secrets])
      if (isWorker(service)) assert.doesNotMatch(given, /secrets-api|sluice_api_key/, name)
    }
})

test('the step that makes secrets makes each once, at random, in files that all services name', async () => {
  using folder = temporaryFolder()
  using other = temporaryFolder()
  const make = async (base: string) => {
    await run(process.execPath, [join(ROOT, 'deploy/docker/make-secrets.mjs'), base])
    const files = readdirSync(base, { recursive: true, encoding: 'utf8' }).filter((name) =>
      statSync(join(base, name)).isFile(),
    )
    return new Map(files.sort().map((name) => [name, readFileSync(join(base, name), 'utf8')]))
  }
  const first = await make(folder.path)
  assert.deepEqual(await make(folder.path), first)
  const second = await make(other.path)
  for (const [name, text] of first) assert.notEqual(second.get(name), text, name)

  const text = textOf('docker-compose.yml').replace(/\$\{QUEUE:-amqp\}/g, 'amqp')
  const named = [...text.matchAll(/\/run\/sluice\/([a-z-]+\/[\w.-]+)/g)].map(({ 1: path }) => path!)
  assert.ok(named.length >= 8)
  for (const path of named) assert.ok(first.has(path), path)
  assert.ok(
    first.has('links/frontier-postgres') && first.has('links/frontier-redis') && first.has('rabbitmq/10-sluice.conf'),
  )
  assert.match(first.get('redis/redis.conf')!, /^maxmemory 768mb\nmaxmemory-policy noeviction$/m)
  const scraped = /credentials_file: \/run\/secrets\/(\S+)/.exec(textOf('deploy/prometheus/prometheus.yml'))?.[1]
  assert.ok(first.has(`metrics/${scraped}`))
})

test('the image runs as 10001, ends on SIGTERM, has folders for every volume, and Node of the version we ask for', () => {
  const dockerfile = textOf('Dockerfile')
  const users = [...dockerfile.matchAll(/^USER (\S+)$/gm)].map(({ 1: user }) => user)
  assert.equal(users.at(-1), '10001:10001')
  assert.match(dockerfile, /^STOPSIGNAL SIGTERM$/m)
  assert.match(dockerfile, /^ENTRYPOINT \["tini", "--", "sluice"\]$/m)
  const major = /^ARG NODE_IMAGE=node:(\d+)\.\d+\.\d+-bookworm-slim$/m.exec(dockerfile)?.[1]
  assert.ok(Number(major) >= Number(/\d+/.exec(JSON.parse(textOf('package.json')).engines.node)![0]))
  const made = /for name in ([a-z ]+);/.exec(dockerfile)?.[1]?.split(' ').sort()
  assert.deepEqual(made, COMPOSE.services.secrets.volumes.map((volume: string) => volume.split('/secrets/')[1]).sort())
  for (const { 1: path } of dockerfile.matchAll(/^COPY (?:--chmod=\d+ )?(deploy\/\S+)/gm))
    assert.ok(textOf(path!) !== '')
  assert.match(textOf('.dockerignore'), /^!deploy\/docker$/m)
})

test('with OTEL=1 the image has the packages of traces, in the versions of our own tests', async () => {
  const script = /node -p '([^']+)'/.exec(textOf('Dockerfile'))![1]!
  const packages = (await run(process.execPath, ['-p', script], { cwd: ROOT })).stdout.trim().split(' ')
  assert.equal(packages.length, 4)
  for (const name of packages) assert.match(name, /^@opentelemetry\/[a-z-]+@\d+\.\d+\.\d+$/)
})

test('the health check says ill when nobody answers or the answer is 503, and well otherwise', async () => {
  let status = 200
  const asked = new Set<string>()
  const server = createServer(({ url }, response) => {
    asked.add(url!)
    response.writeHead(status).end('{"status":"x"}')
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const address = `0.0.0.0:${(server.address() as AddressInfo).port}`
  const check = async () =>
    await run(process.execPath, [join(ROOT, 'deploy/docker/health.mjs')], { env: { SLUICE_METRICS: address } }).then(
      ({ stdout }) => `well: ${stdout}`,
      ({ stdout }) => `ill: ${stdout}`,
    )
  assert.match(await check(), /^well: 200/)
  status = 503
  assert.match(await check(), /^ill: 503/)
  await new Promise((resolve) => server.close(resolve))
  assert.match(await check(), /^ill: no answer/)
  assert.deepEqual([...asked], ['/livez'])
})
