/** Engines are chosen by URL. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ScrapeError } from '../core/errors.ts'
import { openFrontier } from './open.ts'

test('opens an engine by its scheme', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-open-'))
  t.after(() => rmSync(folder, { recursive: true }))
  await using memory = await openFrontier('memory:')
  assert.equal(memory.engine, 'memory:')
  for (const prefix of ['sqlite:', 'sqlite://', 'SQLite:']) {
    const path = join(folder, `${prefix.replaceAll('/', '-')}.db`)
    await using sqlite = await openFrontier(prefix + path)
    assert.equal(sqlite.engine, 'sqlite:')
    assert.ok(existsSync(path))
  }
})

test('lists the known engines if it does not know one', async () => {
  const isRefusal = (message: RegExp) => (error: unknown) =>
    error instanceof ScrapeError &&
    error.code === 'E_OPTION' &&
    message.test(error.message) &&
    /memory: sqlite:/.test(error.details.notes!.join())
  await assert.rejects(openFrontier('mysql://localhost'), isRefusal(/no frontier engine for mysql:/))
  await assert.rejects(openFrontier('frontier.db'), isRefusal(/named by a URL/))
})

test('requires a path for sqlite:', async () => {
  await assert.rejects(openFrontier('sqlite:'), /needs a path/)
})
