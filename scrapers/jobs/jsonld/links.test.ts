/** URLs of jobs, and URLs around them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isJobPage } from './links.ts'

const PAGE = new URL('https://acme.test/careers/')
const is = (path: string, part?: string) => isJobPage(new URL(path, PAGE), PAGE, part)

for (const path of [
  '/careers/jobs/17-cook',
  '/jobs/cook',
  '/en/jobs/berlin/cook/17/',
  '/stellenangebote/koch-m-w-d',
  '/o/x/vacancies/12345',
])
  test(`${path} is a job page`, () => assert.ok(is(path)))

for (const path of [
  '/',
  '/careers/',
  '/jobs',
  '/jobs/search',
  '/careers/teams/kitchen',
  '/jobs/list.pdf',
  '/about/us',
  'https://other.test/jobs/17-cook',
  'mailto:jobs@acme.test',
])
  test(`${path} is not a job page`, () => assert.ok(!is(path)))

test('lets the caller say which path segment job pages have', () => {
  assert.ok(is('/x?gh_jid=17', 'gh_jid='))
  assert.ok(!is('/jobs/17-cook', 'gh_jid='))
})

test('handles a hostile URL quickly', () => {
  assert.ok(!is(`${'/jobs/a'.repeat(20_000)}/`.replace(/a\/$/, 'search')))
})
