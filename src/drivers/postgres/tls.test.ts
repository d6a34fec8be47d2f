/** What a URL and the environment may set for TLS, and that none of it reaches the client library unchecked. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Database } from './database.ts'
import { postgresTls } from './tls.ts'

const PLACE = 'postgres://u:geheim@db.example/x'

test('driver options that would undo sslmode are rejected, with the alternative', () => {
  for (const option of [
    'ssl=0',
    'ssl=true',
    'ssl=no-verify',
    'sslnegotiation=direct',
    'uselibpqcompat=true',
    'sslcrl=x',
  ])
    for (const before of ['?', '?sslmode=verify-full&'])
      assert.throws(
        () => new Database(`${PLACE}${before}${option}`),
        ({ code, message, details }: Error & { code: string; details: { fix: string } }) => {
          assert.equal(code, 'E_OPTION')
          assert.ok(message.includes(`${option.split('=')[0]} in the URL of db.example is not known`), message)
          assert.match(details.fix, /sslmode=verify-full/)
          return !message.includes('geheim')
        },
      )
  assert.equal(postgresTls(`${PLACE}?application_name=me`).ssl, false, 'others are the driver’s')
})

test('PGSSLMODE and PGSSLNEGOTIATION have no effect', async () => {
  const before = { ...process.env }
  Object.assign(process.env, { PGSSLMODE: 'no-verify', PGSSLNEGOTIATION: 'direct' })
  try {
    for (const [search, isVerified] of [
      ['', undefined],
      ['?sslmode=verify-full', true],
    ] as const) {
      const { pool } = new Database(PLACE + search)
      const client = new (pool as unknown as { Client: typeof import('pg').Client }).Client(pool.options)
      const { ssl, sslnegotiation } = (client as unknown as { connectionParameters: Record<string, unknown> })
        .connectionParameters
      assert.equal(sslnegotiation, 'postgres')
      if (isVerified === undefined) assert.equal(ssl, false)
      else assert.deepEqual({ ...(ssl as object) }, {}, 'verified, as Node does it')
    }
  } finally {
    for (const name of ['PGSSLMODE', 'PGSSLNEGOTIATION'])
      if (before[name] === undefined) delete process.env[name]
      else process.env[name] = before[name]
  }
})
