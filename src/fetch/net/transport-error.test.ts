import assert from 'node:assert/strict'
import { test } from 'node:test'
import { transportError } from './transport-error.ts'

test('a resource shortage on this machine is not a failure of the host: the page waits, and costs no attempt', () => {
  for (const code of ['EMFILE', 'ENFILE', 'ENOMEM', 'ENOBUFS', 'EAGAIN']) {
    const cause = Object.assign(new Error(`connect ${code}`), { code })
    const error = transportError(cause, { url: 'http://a.test/', hasResponse: false })
    assert.deepEqual([error.code, error.verdict], ['E_RESOURCES', 'later'])
    assert.ok(error.details.retryAfterMs! >= 1000)
  }
})
