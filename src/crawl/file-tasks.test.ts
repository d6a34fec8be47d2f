import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ScrapeError } from '../core/errors.ts'
import type { Task } from '../core/task.ts'
import { downloadTask, downloadTasks, isFileTask } from './file-tasks.ts'

const task = (session?: string): Task => ({
  id: 'abc',
  url: 'https://a.test/list',
  route: 'list',
  data: null,
  depth: 2,
  priority: 0,
  lane: 'bulk',
  session,
})
const pageOf = (session?: string) => ({ task: task(session), base: 'https://a.test/list' })
const isRouteData = (error: unknown) => error instanceof ScrapeError && error.code === 'E_ROUTE_DATA'

test('a file is a separate task from the page at its URL, and a separate one for each user', () => {
  const own = downloadTask(pageOf('alice'), 'report.pdf', { name: 'r.pdf', meta: { n: 1 } })
  assert.deepEqual(
    { url: own.url, lane: own.lane, session: own.session, data: own.data },
    {
      url: 'https://a.test/report.pdf',
      lane: 'files',
      session: 'alice',
      data: { type: 'download', name: 'r.pdf', meta: { n: 1 } },
    },
  )
  assert.ok(isFileTask(own))
  const keys = [own.key, downloadTask(pageOf('bob'), 'report.pdf').key, downloadTask(pageOf(), 'report.pdf').key]
  assert.equal(new Set([...keys, 'https://a.test/report.pdf']).size, 4)
})

test('values that no queue can hold are the handler’s mistake, and do not end the run', () => {
  assert.throws(() => downloadTask(pageOf(), 'x', { priority: Number.NaN }), isRouteData)
  assert.throws(() => downloadTask(pageOf(), 'x', { name: 7 as never }), isRouteData)
  assert.throws(() => downloadTask(pageOf(), 'x', { meta: { n: 1n } as never }), isRouteData)
})

test('links that a browser began to download become downloads, kept bytes become uploads of this machine', async () => {
  const found = await downloadTasks(
    pageOf('alice'),
    [
      { kind: 'link', url: 'https://a.test/a.zip', name: 'a.zip' },
      { kind: 'kept', path: '/spool/1', name: 'b.csv', bytes: 3 },
    ],
    async ({ path }) => ({ path: `${path}.kept`, lane: 'files@here' }),
  )
  assert.deepEqual(
    found.map(({ lane, data, session }) => ({ lane, data, session })),
    [
      { lane: 'files', data: { type: 'download', name: 'a.zip' }, session: 'alice' },
      { lane: 'files@here', data: { type: 'upload', path: '/spool/1.kept', name: 'b.csv' }, session: 'alice' },
    ],
  )
  assert.notEqual(found[0]!.key, found[1]!.key)
})
