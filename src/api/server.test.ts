/** What the HTTP side reports of its callers, also of those who do not wait for an answer. */
import assert from 'node:assert/strict'
import { request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { type Action, type ApiParts, createApi, type Handlers } from './server.ts'

const PATH = '/v1/webhooks/hook/rotate-secret'

async function withApi(parts: Partial<ApiParts>, work: (url: string, server: Server) => Promise<void>): Promise<void> {
  const app = createApi({
    handlers: {} as Handlers,
    identify: async () => ({ name: 'ci', role: 'admin' }),
    remembered: { begin: async () => undefined, end: async () => {} },
    throttle: () => 0,
    ...parts,
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  await work(`http://127.0.0.1:${port}`, app.server).finally(() => app.close())
}

test('what is asked by somebody who hangs up is reported once, as such', async () => {
  const begun = Promise.withResolvers<void>()
  const end = Promise.withResolvers<void>()
  const reported = Promise.withResolvers<void>()
  const actions: Action[] = []
  const handlers = {
    async rotateSecret() {
      begun.resolve()
      await end.promise
      return { secret: 'whsec_x', oldUntil: new Date(0).toISOString() }
    },
  } as unknown as Handlers
  const onAction = (action: Action) => {
    actions.push(action)
    reported.resolve()
  }
  await withApi({ handlers, onAction }, async (url) => {
    const asking = request(url + PATH, { method: 'POST' }).on('error', () => {})
    asking.end()
    await begun.promise
    asking.destroy()
    await reported.promise
    end.resolve()
    const answer = await fetch(url + PATH, { method: 'POST' })
    assert.equal(answer.status, 200)
    await answer.body?.cancel()
  })
  assert.deepEqual(
    actions.map(({ caller, action, status }) => [caller, action, status]),
    [499, 200].map((status) => ['ci', 'POST /v1/webhooks/:id/rotate-secret', status]),
  )
})

test('what is asked by somebody who was gone before it was known who it is, is reported too', async () => {
  const asked = Promise.withResolvers<void>()
  const gone = Promise.withResolvers<void>()
  const reported = Promise.withResolvers<Action>()
  const handlers = { rotateSecret: async () => ({ secret: '', oldUntil: '' }) } as unknown as Handlers
  const identify: ApiParts['identify'] = async () => {
    asked.resolve()
    await gone.promise
    return { name: 'ci', role: 'admin' }
  }
  await withApi({ handlers, identify, onAction: reported.resolve }, async (url, server) => {
    server.on('connection', (socket) => socket.once('close', gone.resolve))
    const asking = request(url + PATH, { method: 'POST' }).on('error', () => {})
    asking.end()
    await asked.promise
    asking.destroy()
    assert.equal((await reported.promise).status, 499)
  })
})

test('a caller who asks too often is told when to come again, and reported', async () => {
  const refused: Action[] = []
  const throttle = (caller: string) => (caller === 'ci' ? 1500 : 0)
  await withApi({ throttle, onRefused: (action) => refused.push(action) }, async (url) => {
    const answer = await fetch(url + PATH, { method: 'POST' })
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [429, '2'])
    assert.equal(((await answer.json()) as { code: string }).code, 'E_TOO_MANY_REQUESTS')
  })
  assert.deepEqual(
    refused.map(({ caller, role, status }) => [caller, role, status]),
    [['ci', 'admin', 429]],
  )
})
