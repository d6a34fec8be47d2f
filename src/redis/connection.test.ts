/** URLs of Redis: the client library would read options out of them that count more than ours. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Connection } from './connection.ts'

test('options that the client library would read in the URL are refused, with what to write instead', () => {
  for (const option of ['tls=false', 'db=3', 'lazyConnect=', 'sslmode=disable', 'host=other'])
    assert.throws(
      () => new Connection(`rediss://u:geheim@redis.example:6379/0?${option}`),
      ({ code, message, details }: Error & { code: string; details: { fix: string } }) => {
        assert.equal(code, 'E_OPTION')
        assert.ok(message.startsWith(`${option.split('=')[0]} in the URL of redis.example:6379 is not known`), message)
        return /rediss:\/\/.*cacert/.test(details.fix)
      },
    )
  const connection = new Connection('rediss://redis.example:6379/0?servername=other')
  assert.deepEqual(connection.redis.options.tls, { servername: 'other' })
  connection.close()
})
