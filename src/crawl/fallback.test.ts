import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as z from 'zod'
import { defineScraper } from '../core/scraper.ts'
import type { Task } from '../core/task.ts'
import { compileScraper } from './compile-scraper.ts'
import { Fallbacks } from './fallback.ts'

const compiled = compileScraper(
  defineScraper({
    name: 'shop',
    item: z.object({}),
    routes: { plain: {}, shy: { fallback: 'browser' }, app: { fetch: 'browser' } },
    start() {},
    handlers: { plain() {}, shy() {}, app() {} },
  }),
)
const lease = (route: string, attempt: number, id = 'a') => ({ task: { route, id } as Task, attempt })

test('a page falls back to a browser once a site has blocked it, and not before', () => {
  const fallbacks = new Fallbacks(compiled, true)
  assert.equal(fallbacks.isInBrowser(lease('shy', 1)), false)
  fallbacks.note(lease('shy', 1), 'E_TIMEOUT_HEADERS')
  assert.equal(fallbacks.isInBrowser(lease('shy', 2)), false)
  for (const [id, code] of [
    ['a', 'E_BLOCKED'],
    ['b', 'E_CAPTCHA'],
    ['c', 'E_FORBIDDEN'],
  ] as const) {
    // biome-ignore format: a table
    fallbacks.note(lease('shy', 1, id), code)
    assert.equal(fallbacks.isInBrowser(lease('shy', 2, id)), true)
  }
  assert.equal(fallbacks.isInBrowser(lease('shy', 2, 'other')), false)
  assert.equal(fallbacks.isInBrowser(lease('shy', 3, 'other')), true, 'its last tries, whoever had the first ones')
})

test('other routes are fetched as defined, and nothing falls back if there is no browser', () => {
  const fallbacks = new Fallbacks(compiled, true)
  fallbacks.note(lease('plain', 1), 'E_BLOCKED')
  assert.equal(fallbacks.isInBrowser(lease('plain', 3)), false)
  assert.equal(fallbacks.isInBrowser(lease('app', 1)), true)
  const without = new Fallbacks(compiled, false)
  without.note(lease('shy', 1), 'E_BLOCKED')
  assert.equal(without.isInBrowser(lease('shy', 3)), false)
})
