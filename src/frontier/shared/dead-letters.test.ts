/** One cause is one group, whatever text pages contain. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ScrapeError, toErrorRecord } from '../../core/errors.ts'
import { refusedTask } from '../../core/refused.ts'
import { causeOf, groupByCause } from './dead-letters.ts'

test('quoted text from pages and lists does not make a separate cause', () => {
  const texts = ['garbage', 'http://', '', 'with \\ and "quotes" in it', 'ünï']
  const causes = texts.map((text) => causeOf(`not a URL: ${JSON.stringify(text)}`))
  assert.deepEqual(new Set(causes), new Set(['not a URL: <text>']))
  assert.equal(causeOf('no host in "http:///a/7"'), 'no host in <text>')
  assert.equal(
    causeOf('SyntaxError: Unexpected token \'<\', "<!doctype "... is not valid JSON'),
    "SyntaxError: Unexpected token '<', <text>... is not valid JSON",
  )
})

test('names defined by the scraper distinguish causes', () => {
  assert.equal(causeOf('"p.price" matches nothing in "about"'), '"p.price" matches nothing in <text>')
  assert.notEqual(causeOf('"h1" matches nothing'), causeOf('"h2.x" matches nothing'))
  assert.equal(causeOf('no route of "jobs" matches https://a.example/7'), 'no route of "jobs" matches <url>')
  assert.equal(causeOf('data for route "list" cannot be used'), 'data for route "list" cannot be used')
})

test('a stray quotation mark removes nothing else', () => {
  assert.equal(causeOf('a 5" disk is full'), 'a <n>" disk is full')
})

test('nine letters about lines that are not URLs are one group, with an example', () => {
  const letters = ['a', 'b c', 'http://', '::', '%%%', '', 'x"y', 'd', 'e'].map((text) => {
    const error = toErrorRecord(new ScrapeError('E_URL_INVALID', `not a URL: ${JSON.stringify(text)}`))
    const { url, route, lane = '', data = null, depth } = refusedTask(text, error)
    const task = { id: text, url, route, lane, data, depth, priority: 0, session: undefined }
    return { task, error, attempts: 1, losses: 0, diedAtMs: 1, snapshot: undefined }
  })
  const groups = groupByCause(letters)
  assert.deepEqual(
    groups.map(({ code, cause, count, exampleUrl }) => [code, cause, count, exampleUrl]),
    [['E_URL_INVALID', 'not a URL: <text>', 9, 'invalid://refused/a']],
  )
})
