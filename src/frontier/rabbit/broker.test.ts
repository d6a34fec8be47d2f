/** URLs of RabbitMQ: what the client library may read from them, and what is rejected. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Broker } from './broker.ts'
import { namesOf } from './names.ts'

test('rejects options in a broker’s URL that are unknown or meant for the client library', async () => {
  for (const option of ['cacertfile=/ca.pem', 'tls=0', 'sslmode=disable', 'frameMax=1'])
    assert.throws(
      () => new Broker(`amqps://u:geheim@mq.example/x?${option}`, namesOf('r')),
      ({ code, message, details }: Error & { code: string; details: { fix: string } }) =>
        code === 'E_OPTION' && /in the URL of mq\.example is not known$/.test(message) && /cacert/.test(details.fix),
    )
  const broker = new Broker('amqps://mq.example/x?heartbeat=30&redis=redis://localhost', namesOf('r'))
  await broker.close()
})
