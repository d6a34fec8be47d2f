/** Webhooks of a real `sluice serve`, which is also killed. */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { until } from './fleet.ts'
import { type BooksSite, startBooksSite } from './site/books.ts'
import { Receiver } from './site/receiver.ts'
import { type SluiceProcess, sluice, startSluice, temporaryFolder } from './sluice.ts'

let site: BooksSite
let receiver: Receiver
let folder: ReturnType<typeof temporaryFolder>
let server: SluiceProcess
let base: string

const hostOf = (url: string) => new URL(url).host

async function startServer(): Promise<void> {
  const allowed = [site.url, receiver.url].flatMap((url) => ['--allow-address', hostOf(url)])
  server = startSluice(['serve', '--port', '0', '--rps', '0', ...allowed], { cwd: folder.path })
  let printed = ''
  server.child.stdout!.on('data', (text) => {
    printed += text
  })
  await until('it serves', () => /serving (http:\S+)\/v1/.test(printed))
  base = /serving (http:\S+)\/v1/.exec(printed)![1]!
}

async function ask(method: string, path: string, body?: unknown) {
  const response = await fetch(base + path, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  })
  const text = await response.text()
  return { status: response.status, json: text === '' ? undefined : JSON.parse(text) }
}

const arrived = async (type: string, count = 1) =>
  await until(`${type} arrives`, () => receiver.types.filter((one) => one === type).length >= count)

before(async () => {
  site = await startBooksSite({ products: 20, misbehave: false })
  receiver = await Receiver.start()
  folder = temporaryFolder()
  await startServer()
})

after(async () => {
  server.child.kill('SIGTERM')
  assert.equal((await server.result).code, 0)
  await site[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

describe('webhooks of sluice serve', () => {
  let id: string
  let secret: string

  it('notifies a subscriber when a run begins and ends, signed', async () => {
    const made = await ask('POST', '/v1/webhooks', { name: 'runs', url: receiver.url, events: ['run.*'] })
    assert.equal(made.status, 201)
    ;({ id, secret } = made.json)
    const { json: run } = await ask('POST', '/v1/runs', { scraper: 'books', args: { site: site.url } })
    await arrived('run.finished')
    assert.deepEqual(receiver.types, ['run.started', 'run.finished'])
    const { data, headers, id: eventId, body } = receiver.received[1]!
    assert.deepEqual([data['runId'], data['exitCode'], data['scraper']], [run.id, 0, 'books'])
    const signed = createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'))
      .update(`${eventId}.${headers['webhook-timestamp']}.${body}`)
      .digest('base64')
    assert.equal(headers['webhook-signature'], `v1,${signed}`)
  })

  it('shows deliveries and events page by page, and never the secret again', async () => {
    await until('both are written down', async () => {
      const { json } = await ask('GET', '/v1/webhooks/runs/deliveries')
      return json.data.every(({ state }: { state: string }) => state === 'delivered')
    })
    const { json: first } = await ask('GET', `/v1/webhooks/${id}/deliveries?limit=1`)
    const { json: second } = await ask('GET', `/v1/webhooks/${id}/deliveries?limit=1&cursor=${first.next}`)
    assert.deepEqual([first.data[0].type, second.data[0].type], ['run.finished', 'run.started'])
    assert.deepEqual([second.next, first.data[0].status], [null, 204])
    const { json: events } = await ask('GET', '/v1/events?limit=1')
    assert.equal(events.data[0].id, first.data[0].eventId)
    assert.ok(!JSON.stringify(await ask('GET', '/v1/webhooks')).includes('whsec_'))
    const again = await ask('POST', `/v1/deliveries/${first.data[0].id}/redeliver`)
    assert.equal(again.status, 202)
    await arrived('run.finished', 2)
    assert.equal(receiver.received[2]!.id, receiver.received[1]!.id)
  })

  it('sends a test, rotates secrets, and reports invalid subscriptions', async () => {
    const { json: rotated } = await ask('POST', '/v1/webhooks/runs/rotate-secret')
    assert.notEqual(rotated.secret, secret)
    assert.equal((await ask('POST', '/v1/webhooks/runs/test')).json.type, 'webhook.test')
    await arrived('webhook.test')
    assert.equal(String(receiver.received.at(-1)!.headers['webhook-signature']).split(' ').length, 2)
    const wrong = async (more: object) =>
      (await ask('POST', '/v1/webhooks', { name: 'x', url: receiver.url, events: ['*'], ...more })).status
    assert.equal(await wrong({ name: 'runs' }), 422)
    assert.equal(await wrong({ url: 'file:///etc/passwd' }), 422)
    for (const url of ['http://169.254.169.254/', 'http://127.0.0.1/', 'https://[::1]/x', 'http://localhost:1/']) {
      const { status, json } = await ask('POST', '/v1/webhooks', { name: 'x', url, events: ['*'] })
      assert.deepEqual([status, json.code], [422, 'E_PRIVATE_ADDRESS'], url)
      const moved = await ask('PUT', '/v1/webhooks/runs', { name: 'runs', url, events: ['run.*'] })
      assert.equal(moved.status, 422, url)
    }
    assert.equal(await wrong({ events: ['nonsense.*'] }), 422)
    assert.equal(await wrong({ filter: { nonsense: 1 } }), 400)
    assert.equal((await ask('GET', '/v1/webhooks/nobody')).status, 404)
    assert.equal((await ask('POST', '/v1/deliveries/999999/redeliver')).status, 404)
  })

  it('creates a webhook once when its request comes twice', async () => {
    const order = async () => {
      const response = await fetch(`${base}/v1/webhooks`, {
        method: 'POST',
        body: JSON.stringify({ name: 'twice', url: receiver.url, events: ['job.created'] }),
        headers: { 'content-type': 'application/json', 'idempotency-key': 'one-order' },
      })
      return [response.status, await response.json()] as const
    }
    const [first, second] = [await order(), await order()]
    assert.equal(first[0], 201)
    assert.deepEqual(second, first)
    assert.equal((await ask('DELETE', '/v1/webhooks/twice')).status, 204)
  })

  it('delivers after kill -9 what was in flight, with the same id, and what happened in the meantime', async () => {
    const metrics = await (await fetch(`${base}/metrics`)).text()
    assert.match(metrics, /^sluice_webhook_deliveries_total\{outcome="delivered"\} [1-9]/m)
    const sent = receiver.received.length
    receiver.status = 0
    await ask('POST', '/v1/webhooks/runs/test')
    await until('it is on its way', () => receiver.received.length === sent + 1)
    server.child.kill('SIGKILL')
    await server.result
    const args = ['run', 'books', '--arg', `site=${site.url}`, '--rps', '0', '--allow-address', hostOf(site.url)]
    assert.equal((await sluice(args, { cwd: folder.path })).code, 0)
    receiver.status = 200
    await startServer()
    await arrived('run.finished', 3)
    const [lost, ...after] = receiver.received.slice(sent)
    assert.equal(after[0]!.id, lost!.id)
    assert.deepEqual(
      after.map(({ type }) => type),
      ['webhook.test', 'run.started', 'run.finished'],
    )
  })

  it('disables subscribers that are gone, says why, and removes unwanted ones', async () => {
    receiver.status = 410
    await ask('POST', '/v1/webhooks/runs/test')
    await until('it is off', async () => !(await ask('GET', '/v1/webhooks/runs')).json.isActive)
    assert.match((await ask('GET', '/v1/webhooks/runs')).json.disabledReason, /410/)
    assert.equal((await ask('POST', '/v1/webhooks/runs/test')).status, 409)
    assert.equal((await ask('GET', '/v1/events?type=webhook.disabled')).json.data.length, 1)
    assert.equal((await ask('DELETE', '/v1/webhooks/runs')).status, 204)
    assert.deepEqual((await ask('GET', '/v1/webhooks')).json.data, [])
  })

  it('can also be set up from the command line', async () => {
    receiver.status = 200
    const command = async (...args: string[]) => {
      const result = await sluice(['webhook', ...args, '--json'], { cwd: folder.path })
      return { code: result.code, json: result.code === 0 ? JSON.parse(result.stdout) : undefined, said: result.stderr }
    }
    const { json: added } = await command('add', receiver.url, '--events', 'run.failed', '--name', 'typed')
    assert.match(added.secret, /^whsec_/)
    assert.match((await command('add', receiver.url, '--events', 'nonsense')).said, /no events are called nonsense/)
    const { json: tested } = await command('test', 'typed')
    assert.deepEqual([tested.type, tested.state, tested.status], ['webhook.test', 'delivered', 200])
    receiver.status = 400
    const refused = await sluice(['webhook', 'test', 'typed'], { cwd: folder.path })
    assert.deepEqual([refused.code, refused.stdout], [1, 'not delivered: answered 400\n'])
    const { json: sent } = await command('deliveries', 'typed')
    assert.deepEqual(
      sent.deliveries.map(({ state, status, error }: Record<string, unknown>) => [state, status, error ?? null]),
      [
        ['dead', 400, 'answered 400'],
        ['delivered', 200, null],
      ],
    )
    const shown = await sluice(['webhook', 'deliveries', 'typed'], { cwd: folder.path })
    assert.match(shown.stdout, /webhook\.test +dead +1 +400 +answered 400/)
    const elsewhere = ['--store', `sqlite:${join(folder.path, 'other.db')}`]
    const { said } = await command('add', receiver.url, '--name', 'unserved', ...elsewhere)
    assert.match(said, new RegExp(`note: .* --allow-address ${hostOf(receiver.url)}`))
    const unsent = await sluice(['webhook', 'test', 'unserved', '--wait', '0s', ...elsewhere], { cwd: folder.path })
    assert.equal((await command('test', 'unserved', '--wait', 'long', ...elsewhere)).code, 2)
    assert.match(unsent.stdout, /^not sent yet: .*sluice webhook deliveries unserved/)
    const { json: listed } = await command('list')
    assert.deepEqual([listed.webhooks[0].name, listed.webhooks[0].secret], ['typed', undefined])
    assert.equal((await command('remove', 'typed')).code, 0)
  })
})
