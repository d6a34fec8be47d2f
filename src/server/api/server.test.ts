/** The HTTP side: what it reports about callers, which it refuses, and how long it waits for them. */
import assert from 'node:assert/strict'
import { request, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { test } from 'node:test'
import { EVENT_STREAMS_MAX } from './open-streams.ts'
import { type Action, type ApiParts, createApi, type Handlers } from './server.ts'

const PATH = '/v1/webhooks/hook/rotate-secret'

async function withApi(parts: Partial<ApiParts>, work: (url: string, server: Server) => Promise<void>): Promise<void> {
  const app = createApi({
    handlers: {} as Handlers,
    identify: async () => ({ name: 'ci', role: 'admin', scope: 'ci' }),
    addressOf: (_, socketAddress) => socketAddress,
    remembered: { begin: async () => undefined, end: async () => {} },
    throttle: () => 0,
    ...parts,
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  await work(`http://127.0.0.1:${port}`, app.server).finally(() => app.close())
}

test('a request whose caller hangs up is reported once, as such', async () => {
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

test('a request whose caller hung up before being identified is reported too', async () => {
  const asked = Promise.withResolvers<void>()
  const gone = Promise.withResolvers<void>()
  const reported = Promise.withResolvers<Action>()
  const handlers = { rotateSecret: async () => ({ secret: '', oldUntil: '' }) } as unknown as Handlers
  const identify: ApiParts['identify'] = async () => {
    asked.resolve()
    await gone.promise
    return { name: 'ci', role: 'admin', scope: 'ci' }
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

test('a caller over its rate limit is told when to retry, and reported', async () => {
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

const HOOK = { name: 'mine', url: 'https://example.com/', events: ['run.finished'] }

test('a path with parameters answers 405 with its methods, and an unknown path 404', async () => {
  await withApi({}, async (url) => {
    const status = async (method: string, path: string) => {
      const answer = await fetch(url + path, { method })
      await answer.body?.cancel()
      return [answer.status, answer.headers.get('allow')]
    }
    assert.deepEqual(await status('DELETE', '/v1/runs/20260101_000000_aaaa'), [405, 'GET'])
    assert.deepEqual(await status('GET', '/v1/runs/20260101_000000_aaaa/pause'), [405, 'POST'])
    assert.deepEqual(await status('POST', '/v1/webhooks/x/'), [405, 'GET, PUT, DELETE'])
    assert.deepEqual(await status('GET', '/v1/runs/x/y/z'), [404, null])
    assert.deepEqual(await status('DELETE', '/v1xruns'), [404, null])
  })
})

test('health checks are never rate limited, even if other callers are', async () => {
  const handlers = { livez: async () => ({ status: 'ok' }) } as unknown as Handlers
  await withApi({ handlers, throttle: () => 1000 }, async (url) => {
    const answers = await Promise.all(Array.from({ length: 100 }, () => fetch(`${url}/livez`)))
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    assert.equal((await fetch(`${url}/v1/runs`)).status, 429)
  })
})

test('idempotency keys of two callers never collide', async () => {
  const keys: string[] = []
  const remembered: ApiParts['remembered'] = {
    begin: async (key) => {
      keys.push(key)
      return 'busy'
    },
    end: async () => {},
  }
  let name = ''
  const identify: ApiParts['identify'] = async () => ({ name, role: 'admin', scope: JSON.stringify(['key', name]) })
  await withApi({ remembered, identify }, async (url) => {
    for (const [caller, key] of [
      ['ci', 'x abc'],
      ['ci x', 'abc'],
      ['ci', 'x","abc'],
      ['ci","x', 'abc'],
    ] as const) {
      name = caller
      const headers = { 'idempotency-key': key, 'content-type': 'application/json' }
      const answer = await fetch(`${url}/v1/webhooks`, { method: 'POST', headers, body: JSON.stringify(HOOK) })
      assert.equal(answer.status, 409, await answer.text())
    }
  })
  assert.equal(new Set(keys).size, 4, keys.join('\n'))
})

test('distinguishes no key, another scheme and a wrong key, and limits them with Retry-After', async () => {
  for (const [given, waitMs, status, detail] of [
    ['no key', 0, 401, /a key is needed/],
    ['another scheme', 0, 401, /not a Bearer key/],
    ['wrong key', 0, 401, /this key is unknown or revoked/],
    ['wrong key', 1500, 429, /without a valid key/],
  ] as const) {
    const refused: Action[] = []
    await withApi(
      { identify: async () => ({ given, waitMs }), onRefused: (action) => refused.push(action) },
      async (url) => {
        const answer = await fetch(`${url}/v1/runs`)
        assert.equal(answer.status, status)
        assert.equal(answer.headers.get('retry-after'), waitMs > 0 ? '2' : null)
        const problem = (await answer.json()) as { detail: string; hint: string }
        assert.match(problem.detail, detail)
        if (given !== 'wrong key') assert.match(problem.hint, /`Authorization: Bearer KEY`\./)
      },
    )
    assert.deepEqual(
      refused.map(({ caller, role, address, status: told }) => [caller, role, address, told]),
      [['127.0.0.1', 'none', '127.0.0.1', status]],
    )
  }
})

/** Runs until its caller hangs up. */
const watchRun: Handlers['watchRun'] = async (_, { signal }) => ({
  contentType: 'text/event-stream',
  body: (async function* () {
    yield ': here\n\n'
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  })(),
})
const EVENTS = '/v1/runs/20260101_000000_aaaa/events'

test('limits the event streams of a caller, and allows another one when one is closed', async () => {
  await withApi({ handlers: { watchRun } as Handlers }, async (url) => {
    const open = async () => {
      const hangUp = new AbortController()
      const { status, headers } = await fetch(url + EVENTS, { signal: hangUp.signal })
      return { status, retryAfter: headers.get('retry-after'), hangUp }
    }
    const streams = await Promise.all(Array.from({ length: EVENT_STREAMS_MAX }, open))
    assert.deepEqual([...new Set(streams.map(({ status }) => status))], [200])
    const refused = await open()
    assert.deepEqual([refused.status, refused.retryAfter], [429, '5'])
    streams[0]!.hangUp.abort()
    let last = await open()
    while (last.status === 429) last = await open()
    assert.equal(last.status, 200)
    for (const { hangUp } of [...streams, last]) hangUp.abort()
  })
})

test('a caller whose key is revoked loses its open streams', async () => {
  let isRevoked = false
  const identify: ApiParts['identify'] = async () =>
    isRevoked ? { given: 'wrong key', waitMs: 0 } : { name: 'ci', role: 'read', scope: 'ci' }
  await withApi({ handlers: { watchRun } as Handlers, identify }, async (url) => {
    const reader = (await fetch(url + EVENTS)).body!.getReader()
    await reader.read()
    isRevoked = true
    await assert.rejects(async () => {
      while (!(await reader.read()).done);
      throw new Error('it was ended as if it were whole')
    }, /terminated|aborted|socket/i)
  })
})

test('a stream without further events answers 204, which stops an EventSource', async () => {
  await withApi({ handlers: { watchRun: async () => undefined } as unknown as Handlers }, async (url) => {
    const answer = await fetch(url + EVENTS)
    assert.deepEqual([answer.status, await answer.text()], [204, ''])
  })
})

test('a request that does not arrive in time is cut off, in its headers and in its body', async () => {
  const head = 'POST /v1/webhooks HTTP/1.1\r\nhost: localhost\r\n'
  await withApi({ requestMsMax: 300 }, async (url) => {
    for (const [part, text] of [
      ['headers', head],
      ['body', `${head}content-type: application/json\r\ncontent-length: 100\r\n\r\n{`],
    ]) {
      const startMs = performance.now()
      const answer = await new Promise<string>((resolve, reject) => {
        let said = ''
        const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(text!))
        socket.setEncoding('latin1').on('data', (piece) => {
          said += piece
        })
        socket.once('close', () => resolve(said)).once('error', reject)
      })
      assert.match(answer, /^HTTP\/1\.1 408 /, part)
      assert.ok(performance.now() - startMs >= 290, `${part}: not before its time`)
    }
  })
})
