import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ERRORS, EVERY_ERROR } from '../core/error-table.ts'
import { explainAllText, explainText } from './explain.ts'

test('explains a code in full', () => {
  assert.equal(
    explainText('E_ENCODING'),
    `E_ENCODING  the body cannot be decompressed

  why    ${ERRORS.E_ENCODING.why}
  fix    ${ERRORS.E_ENCODING.fix}
  then   retry: tried again after a backoff, up to \`retries\` times; then a dead letter (at most 2 tries)
  class  encoding    sluice dlq retry RUN --class encoding`,
  )
  assert.match(explainText('E_SERVICE'), /\n {2}exit {3}3$/)
})

test('explains the codes of the API', () => {
  assert.match(
    explainText('E_NOT_READY'),
    /^E_NOT_READY {2}the server is not ready\n[\s\S]*\n {2}then {2}.* status 503$/,
  )
})

test('accepts a code in any spelling', () => {
  assert.equal(explainText('timeout-total'), explainText('E_TIMEOUT_TOTAL'))
})

test('suggests the code that was meant', () => {
  assert.throws(
    () => explainText('E_ROBTOS'),
    (error: Error & { code: string; fix: string }) => {
      assert.equal(error.code, 'E_USAGE')
      assert.equal(error.fix, 'sluice explain E_ROBOTS')
      return true
    },
  )
  assert.throws(() => explainText('constructor'), { code: 'E_USAGE' })
})

test('lists every code', () => {
  const text = explainAllText()
  for (const code of Object.keys(EVERY_ERROR)) assert.ok(text.includes(code), code)
})
