/**
 * Plants secrets in every form and everywhere in a run (arguments, URLs, logs, errors, rejected items), and searches everything
 * that is shown: the terminal, the readable files, the API, traces, metrics and webhooks.
 */
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { until } from './fleet.ts'
import { SECRET_TEXTS } from './secret-forms.ts'
import { startServe } from './serve.ts'
import { sluice, temporaryFolder } from './sluice.ts'

const FORMS = new URL('./secret-forms.ts', import.meta.url).href

/** Page N fails with the secret of form N in its URL, its log line, its error and an item that the schema rejects. */
const SCRAPER = `
import { defineScraper } from 'sluice'
import * as z from 'zod'
import { SECRET_TEXTS, SECRET_VALUES } from '${FORMS}'

const canary = (kind, n) => 'cnry' + kind + String(n).padStart(3, '0') + 'Zx9Secret'
export default defineScraper({
  name: 'leaky',
  args: z.object({ base: z.string(), password: z.string(), login: z.string(), note: z.string() }),
  item: z.object({ id: z.string(), n: z.number() }),
  key: 'id',
  routes: { page: { match: '/p/:n' } },
  start: async ({ args, enqueue, log }) => {
    log.warn('starting with password=' + args.password)
    await enqueue('page', SECRET_TEXTS.map((_, n) => new URL('/p/' + n + '?access_token=' + canary('u', n), args.base)))
  },
  handlers: {
    async page({ params, emit, log }) {
      const n = Number(params.n)
      const [, write] = SECRET_TEXTS[n]
      log.warn(write(canary('l', n)), { extra: SECRET_VALUES.map(([, make]) => make(canary('v', n))), text: write(canary('x', n)) })
      await emit({ id: 'a' + n, n: 'token=' + canary('i', n), password: canary('j', n) })
      throw new Error(write(canary('e', n)))
    },
  },
  limits: { retries: 0, perHost: { rps: 0, concurrency: 8 }, failAt: '100%' },
})
`

/** A login with every character that once cut the search for it short. */
const SERVER = 'postgres://u:pa/#@cnrysrvZx9Secret@127.0.0.1:1/x'
const ARGS = {
  password: 'cnryargpZx9Secret',
  login: 'http://ana:pa/cnryargrlZx9Secret@x.test/',
  note: 'PGPASSWORD=cnryargnZx9Secret psql',
}
const CANARY = /cnry\w{1,8}Zx9Secret/i

/** The canaries in a text, including those in base64. */
function found(text: string): string[] {
  const coded = (text.match(/[\w+/-]{24,}/g) ?? []).map((word) => Buffer.from(word, 'base64').toString('latin1'))
  return [text, ...coded].flatMap((one) => CANARY.exec(one)?.[0] ?? [])
}

test('no planted secret is shown anywhere', { timeout: 300_000 }, async () => {
  using folder = temporaryFolder()
  const cwd = folder.path
  mkdirSync(join(cwd, 'scrapers'))
  writeFileSync(join(cwd, 'scrapers', 'leaky.ts'), SCRAPER)
  const seen = new Map<string, string>()
  await using site = await listen((request, response) => {
    response.setHeader('content-type', 'text/html')
    response.end(
      `<h1>x</h1><input name="csrf" value="cnrysnapZx9Secret"><p>Cookie: a=cnrysnadZx9Secret</p>${request.url}`,
    )
  })
  let traces = ''
  let told = ''
  await using collector = await listen((request, response) => {
    const isTrace = request.url!.includes('v1/traces')
    request.setEncoding('latin1').on('data', (text) => {
      if (isTrace) traces += text
      else told += text
    })
    request.on('end', () => response.end('{}'))
  })

  const see = async (name: string, args: string[], env: NodeJS.ProcessEnv = {}) => {
    const { stdout, stderr } = await sluice(args, { cwd, env })
    seen.set(name, stdout + stderr)
    return stdout
  }
  const given = Object.entries({ ...ARGS, base: site.url }).flatMap(([name, value]) => ['--arg', `${name}=${value}`])
  await see('run', ['run', 'leaky', ...given, '-v', '--log-level', 'debug', '--otel', collector.url])
  const run = readdirSync(join(cwd, 'runs', 'leaky')).sort()[0]!
  const letters = JSON.parse(await see('dlq list --json', ['dlq', 'list', run, '--json', '--limit', '500'])).letters
  assert.equal(letters.length, SECRET_TEXTS.length, 'every form is in a dead letter')
  await Promise.all([
    see('ps', ['ps']),
    see('ps --json', ['ps', '--json']),
    see('dlq list', ['dlq', 'list', run, '--limit', '500']),
    see('dlq groups', ['dlq', 'groups', run]),
    see('dlq groups --json', ['dlq', 'groups', run, '--json']),
    see('dlq show', ['dlq', 'show', run, letters[0].id]),
    see('dlq show --json', ['dlq', 'show', run, letters[0].id, '--json']),
  ])
  await Promise.all([
    see('logs', ['logs', run, '--level', 'debug']),
    see('logs --json', ['logs', run, '--json']),
    see('stats', ['stats', run]),
    see('stats --json', ['stats', run, '--json']),
    see('resume with another password', ['run', 'leaky', '--resume', run, '--arg', 'password=cnryothrZx9Secret', '-v']),
  ])
  const servers = {
    SLUICE_FRONTIER: SERVER,
    SLUICE_STORE: SERVER,
    SLUICE_REDIS: 'redis://:pa/cnryredZx9Secret@127.0.0.1:1',
  }
  await Promise.all([
    see('config', ['config'], servers),
    see('config --explain', ['config', '--explain'], servers),
    see('config --json', ['config', '--json'], servers),
    see('doctor --json', ['doctor', '--host', 'localhost', '--json'], servers),
  ])
  await Promise.all([
    see('run with a broken frontier', ['run', 'leaky', ...given, '-v'], servers),
    see('run with a broken amqp URL', ['run', 'leaky', ...given], {
      SLUICE_FRONTIER: 'amqp://u:pa/cnryamqpZx9Secret@127.0.0.1:1',
      SLUICE_REDIS: 'redis://127.0.0.1:1',
    }),
    see('run with a broken proxy', ['run', 'leaky', ...given], {
      SLUICE_PROXY: 'http://user.a:12/cnryprxyZx9Secret@h:1',
    }),
    see('run with a broken collector', ['run', 'leaky', ...given], { SLUICE_OTEL: 'u:cnryotelZx9Secret@h' }),
    see('run with a broken sink', ['run', 'leaky', ...given], { SLUICE_SINK: 'u:cnrysinkZx9Secret@h' }),
    see('fetch', ['fetch', 'http://u:pa/cnryftchZx9Secret@127.0.0.1:1/?token=cnryftcqZx9Secret', '-v']),
    see('an unknown option', ['run', 'leaky', '--concurrency', 'token=cnryoptnZx9Secret']),
  ])
  assert.match(seen.get('run with a broken amqp URL')!, /E_OPTION.*URL of RabbitMQ/)

  const runFolder = join(cwd, 'runs', 'leaky', run)
  for (const name of readdirSync(runFolder)) {
    // The queue keeps its working data, and snapshots are unmodified pages.
    if (/^(?:frontier|lock|files)\.db|^snapshots$/.test(name)) continue
    seen.set(name, readFileSync(join(runFolder, name), 'latin1'))
  }
  assert.ok(seen.has('run.json') && seen.has('log.jsonl') && seen.has('errors.jsonl'))

  {
    await using server = await startServe(['--allow-private'], { cwd })
    const ask = async (path: string, init?: RequestInit) => {
      const text = await (await fetch(server.url + path, init)).text()
      seen.set(`${init?.method ?? 'GET'} ${path}`, text)
      return text
    }
    const post = (body: object) => ({
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const hook = { name: 'hook', url: `${collector.url}/hook`, events: ['*'] }
    assert.match(await ask('/v1/webhooks', post(hook)), /"secret":"whsec_[\w+/]{43}=/, 'a new secret is shown once')
    const { id } = JSON.parse(await ask('/v1/runs', post({ scraper: 'leaky', args: { ...ARGS, base: site.url } })))
    const paths = ['', '/errors', '/events', '/errors?group=cause'].map((part) => `/v1/runs/${run}${part}`)
    for (const path of [
      ...paths,
      `/v1/runs/${id}`,
      `/v1/runs/${id}/events`,
      '/v1/runs',
      `/v1/dlq?run=${run}&limit=500`,
      `/v1/dlq/groups?run=${run}`,
      '/v1/runs/none?token=cnrynonZx9Secret',
      '/v1/scrapers',
      '/v1/health',
      '/v1/webhooks',
      '/metrics',
      '/readyz',
      '/openapi.json',
    ])
      await ask(path)
    await until('the end of a run is told', () => /run\.f(?:inished|ailed)/.test(told))
    for (const path of ['/v1/events', '/v1/audit']) await ask(path)
    assert.match(seen.get('GET /v1/audit')!, /leaky/)
  }
  for (const args of [['audit'], ['audit', '--json'], ['webhook', 'list', '--json']]) await see(args.join(' '), args)
  seen.set('traces', traces)
  seen.set('webhooks', told)
  assert.ok(traces.length > 0 && told.length > 0)

  const came = [...seen].flatMap(([name, text]) => {
    const canaries = found(text)
    return canaries.length === 0 ? [] : [`${name}: ${canaries.slice(0, 3).join(' ')}`]
  })
  assert.deepEqual(came, [])
  assert.match(readFileSync(join(runFolder, 'run.json'), 'utf8'), /"password": "\*\*\*"/)
})

async function listen(handle: Parameters<typeof createServer>[1]) {
  const server = createServer(handle!)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
