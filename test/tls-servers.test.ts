/**
 * TLS to the servers of a fleet: the right authority works from end to end, and everything else is rejected with a clear message.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { managementOf, readBroker } from '../src/frontier/rabbit/management.ts'
import { Fleet } from './fleet.ts'
import { createAuthority } from './services/certificates.ts'
import { startPostgres } from './services/postgres.ts'
import { startRabbit } from './services/rabbitmq.ts'
import { redisForTests, startRedis } from './services/redis.ts'
import { startBooksSite } from './site/books.ts'
import { sluice, temporaryFolder } from './sluice.ts'

const parts = new AsyncDisposableStack()
after(() => parts.disposeAsync())
const authority = parts.use(createAuthority())
const stranger = parts.use(createAuthority('somebody else'))
const server = { ca: authority.ca, ...authority.sign('localhost') }
const client = authority.sign('worker')
const folder = parts.use(temporaryFolder())

/** `?cacert=FILE&cert=FILE&key=FILE` */
const secured = (url: string, more: Record<string, string>) => {
  const parsed = new URL(url)
  parsed.search = new URLSearchParams(more).toString()
  return parsed.href
}
const known = { cacert: authority.ca, cert: client.cert, key: client.key }

async function runsWhole(frontier: string): Promise<Fleet> {
  await using site = await startBooksSite({ products: 20 })
  const fleet = new Fleet({ frontier, cwd: folder.path })
  const queued = await fleet.start('--site', site.url)
  assert.doesNotMatch(queued.worker_command, /\.key|password|geheim/)
  const { code, stderr } = await fleet.worker(queued.run_id).result
  assert.equal(code, 0, stderr)
  assert.equal((await fleet.items(queued.run_id)).length, 20)
  return fleet
}

async function refusal(frontier: string): Promise<{ code: number | null; text: string }> {
  const fleet = new Fleet({ frontier, cwd: folder.path })
  const { code, stderr } = await fleet.run('start', 'books', '--mode', 'distributed', '--site', 'http://127.0.0.1:9/')
  return { code, text: stderr }
}

async function isRefused(frontier: string, words: RegExp, code = 3): Promise<void> {
  const { code: found, text } = await refusal(frontier)
  assert.match(text, words)
  assert.match(text, /fix: /)
  assert.equal(found, code, text)
}

test('runs over PostgreSQL with TLS, and rejects wrong authorities, plain text and a missing client certificate', async () => {
  await using postgres = await startPostgres({ tls: { ...server, wantsClient: true } })
  const place = postgres.url.split('?')[0]!
  const files = { sslcert: client.cert, sslkey: client.key }
  await runsWhole(secured(place, { sslmode: 'verify-full', sslrootcert: authority.ca, ...files }))
  const wrong = { sslrootcert: stranger.ca, ...files }
  for (const sslmode of ['verify-full', 'verify-ca', 'require'])
    await isRefused(secured(place, { sslmode, ...wrong }), /not signed by an authority known here/)
  const env = { SLUICE_STORE: secured(place, { sslmode: 'verify-full', ...wrong }) }
  const checked = await sluice(['doctor'], { cwd: folder.path, env })
  assert.match(checked.stdout, /store.*does not answer: .*not signed by an authority known here/)
  assert.match(checked.stdout, /sslrootcert=FILE/)
  assert.notEqual(checked.code, 0)
  for (const more of ['ssl=0', 'sslnegotiation=direct'])
    await isRefused(`${secured(place, { sslmode: 'verify-full', ...wrong })}&${more}`, /E_OPTION.*is not known/, 2)
  await isRefused(place, /no encryption[\s\S]*fix: .*sslmode=verify-full/)
  await isRefused(secured(place, { sslrootcert: authority.ca }), /client certificate[\s\S]*fix: .*sslcert/)
  await isRefused(secured(place, { sslrootcert: '/no/such.pem' }), /E_OPTION.*sslrootcert.*no\/such\.pem/, 2)
  const loose = await refusal(secured(place, { sslmode: 'require', ...files }))
  assert.match(loose.text, /SLUICE_TLS_UNVERIFIED.*not verified \(sslmode=require\)/)
  assert.equal(loose.code, 0, loose.text)
})

test('runs over Redis with TLS as an ACL user, and rejects wrong authorities, names, dates and plain text', async () => {
  const settings = ['--user', 'fleet', 'on', '>geheim', '~*', '&*', '+@all', '--user', 'default', 'off']
  await using redis = await startRedis({ tls: { ...server, wantsClient: true }, settings })
  const place = redis.url.replace('//', '//fleet:geheim@')
  await runsWhole(secured(place, known))
  await Promise.all([
    isRefused(secured(place, { ...known, cacert: stranger.ca }), /not signed by an authority known here/),
    isRefused(secured(place, { ...known, servername: 'db.example' }), /certificate is for another name/),
    // Its reset may overtake its message.
    isRefused(secured(place, { cacert: authority.ca }), /wants one and got none|requires a client certificate/),
    isRefused(place.replace('rediss:', 'redis:'), /write rediss:/),
    isRefused(secured(place.replace('geheim', 'falsch'), known), /refuses: WRONGPASS/),
    isRefused(secured(place, { ...known, key: '/no/such.key' }), /E_OPTION.*key.*no\/such\.key/, 2),
    isRefused(secured(place, { cacert: authority.ca, cert: client.cert }), /cert and key.*go together/, 2),
  ])
  const { code, text } = await refusal(secured(place, { ...known, cacert: stranger.ca, verify: 'none' }))
  assert.equal(code, 0, text)
  assert.match(text, /SLUICE_TLS_UNVERIFIED/)
  assert.doesNotMatch(text, /geheim/)
  const old = authority.sign('old', { isExpired: true })
  await using late = await startRedis({ tls: { ca: authority.ca, ...old } })
  await isRefused(secured(late.url, { cacert: authority.ca }), /its certificate has expired/)
})

test('rejects TLS to a server without it, and sslmode=prefer continues in plain text', async () => {
  await using redis = await startRedis()
  await isRefused(redis.url.replace('redis:', 'rediss:'), /if this port does not speak TLS/)
  await isRefused(`${redis.url}?cacert=${authority.ca}`, /cacert in a URL of redis:.*nothing is encrypted/, 2)
  await using postgres = await startPostgres()
  await isRefused(`${postgres.url}?sslmode=require`, /does not speak TLS at this port/)
  await isRefused(`${postgres.url}?sslmode=allways`, /sslmode=allways/, 2)
  assert.equal((await refusal(`${postgres.url}?sslmode=prefer`)).code, 0)
})

test('runs over RabbitMQ with TLS, including its management API, and rejects wrong settings', async () => {
  await using broker = await startRabbit({ tls: { ...server, wantsClient: true } })
  await using redis = await redisForTests()
  const withRedis = (more: Record<string, string>) => secured(broker.url, { redis: redis.url, ...more })
  await runsWhole(withRedis(known))
  const { url, vhost } = managementOf(withRedis(known))
  assert.equal((await readBroker(url, { vhost, queues: ['no-such'] }))[0]!.isThere, false)
  const foreign = managementOf(withRedis({ ...known, cacert: stranger.ca }))
  await assert.rejects(readBroker(foreign.url, { vhost, queues: ['x'] }), /not signed by an authority known here/)
  await Promise.all([
    isRefused(withRedis({ ...known, cacert: stranger.ca }), /not signed by an authority known here/),
    isRefused(withRedis({ cacert: authority.ca }), /wants one and got none|unreachable/),
    isRefused(withRedis({}).replace('amqps:', 'amqp:'), /write amqps:/),
  ])
})
