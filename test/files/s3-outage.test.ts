/** A bucket that goes down and comes back: no file is lost, none is downloaded twice, no try is used up. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startS3 } from '../services/s3.ts'
import { temporaryFolder } from '../sluice.ts'
import { content, serveFile, startFileServer } from './file-server.ts'
import { fileTask, startLoop } from './loop-rig.ts'
import { filesIn } from './rig.ts'

test('lets files wait for a bucket that is down', async () => {
  using folder = temporaryFolder()
  await using s3 = await startS3()
  const paths = [1, 2, 3, 4, 5, 6].map((i) => `/${i}.bin`)
  await using server = await startFileServer(
    Object.fromEntries(paths.map((path, i) => [path, serveFile(content(100_000, i + 1))])),
  )
  const orders = { store: s3.url('outage') }
  await using rig = await startLoop({ folder: folder.path, orders, env: { ...s3.env }, retries: 0 })
  await rig.frontier.add(paths.slice(0, 2).map((path) => fileTask(server.url + path)))
  await rig.finished()
  await s3.stop()
  await rig.frontier.add(paths.slice(2).map((path) => fileTask(server.url + path)))
  const { error } = await rig.event(({ outcome }) => outcome === 'postponed')
  assert.equal(error!.code, 'E_FILE_STORE')
  await s3.start()
  await rig.finished()
  const records = await rig.records.list('run-1')
  assert.equal(records.length, paths.length)
  for (const { where } of records) assert.match(where, /^s3:\/\/test-files\/outage\/shop\/run-1\/_\//)
  assert.equal(s3.files().filter((name) => name.endsWith('.bin._S3rver_object')).length, paths.length)
  assert.equal(server.asked.length, paths.length, 'each was downloaded once')
  assert.equal((await rig.frontier.stats()).failed, 0)
  assert.deepEqual(filesIn(`${folder.path}/spool`), [])
})
