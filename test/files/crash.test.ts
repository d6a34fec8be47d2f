/** kill -9 of everything in the middle of downloads, again and again: nothing is lost, torn, or recorded twice. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { taskId } from '../../src/core/url.ts'
import { openSqliteRecords } from '../../src/files/records.ts'
import { openFrontier } from '../../src/frontier/open.ts'
import { temporaryFolder } from '../sluice.ts'
import { content, startFileServer } from './file-server.ts'
import { filesIn } from './rig.ts'

const CHILD = fileURLToPath(new URL('./files-run-child.test-kit.ts', import.meta.url))
const FILES = 8
const BYTES = 1_500_000
const PIECE_MS = 2
/** Alternately in the middle of a download, and when a file has just got its name and is not recorded yet. */
const KILLS = 4

test('ends with every file once after a run of files was killed again and again', async () => {
  using folder = temporaryFolder()
  const contents = new Map<string, Buffer>()
  let kill = (_sent: number) => {}
  await using server = await startFileServer({
    '*': (request, response) => {
      const file = contents.get(request.url!)!
      const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0)
      const range = from > 0 ? { 'content-range': `bytes ${from}-${file.length - 1}/${file.length}` } : {}
      response.writeHead(from > 0 ? 206 : 200, { etag: '"v1"', 'content-length': file.length - from, ...range })
      // In pieces, and not all at once into the system's buffers, so that a kill hits the middle.
      let at = from
      const more = () => {
        if (response.destroyed) return
        const piece = file.subarray(at, at + 65_536)
        at += piece.length
        kill(server.sent)
        if (at >= file.length) response.end(piece)
        else response.write(piece, () => setTimeout(more, PIECE_MS))
      }
      more()
    },
  })
  const paths = Array.from({ length: FILES }, (_, i) => `/file-${i}.bin`)
  for (const [i, path] of paths.entries()) contents.set(path, content(BYTES, i + 1))
  const byId = new Map(paths.map((path) => [taskId({ url: server.url + path }).slice(0, 20), contents.get(path)!]))
  const store = join(folder.path, 'store')
  const checked = new Set<string>()
  const checkNames = () => {
    if (!existsSync(store)) return
    for (const name of filesIn(store).filter((one) => !one.startsWith('.incoming/'))) {
      const { ino, mtimeMs } = statSync(join(store, name))
      if (checked.has(`${ino} ${mtimeMs}`)) continue
      checked.add(`${ino} ${mtimeMs}`)
      const expected = byId.get(/\/([0-9a-f]{20})-/.exec(name)![1]!)!
      assert.ok(readFileSync(join(store, name)).equals(expected), `${name} is torn`)
    }
  }
  const stored = () => (existsSync(store) ? filesIn(store).filter((name) => !name.startsWith('.')).length : 0)
  /** A part to resume has reached the disk: sent bytes may still be in flight. */
  const hasPart = () => {
    const spool = join(folder.path, 'spool')
    return (existsSync(spool) ? filesIn(spool) : []).some((name) => {
      const size = name.endsWith('.part') ? (statSync(join(spool, name), { throwIfNoEntry: false })?.size ?? 0) : 0
      return size > 0 && size < BYTES
    })
  }
  const start = (): ChildProcess =>
    spawn(process.execPath, [CHILD, folder.path, folder.path, ...paths.map((path) => server.url + path)], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, NODE_TEST_CONTEXT: undefined },
    })

  for (let kills = 1; kills <= KILLS; kills++) {
    const child = start()
    const until = server.sent + BYTES * 1.3
    const before = stored()
    kill = (sent) => {
      if (kills % 2 === 1 && sent >= until && hasPart()) child.kill('SIGKILL')
    }
    const watch = setInterval(() => {
      if (kills % 2 === 0 && stored() > before) child.kill('SIGKILL')
      checkNames()
    }, 10)
    await once(child, 'exit')
    clearInterval(watch)
    checkNames()
  }
  kill = () => {}
  const last = start()
  let said = ''
  last.stdout!.setEncoding('utf8').on('data', (text) => {
    said += text
  })
  const watch = setInterval(checkNames, 20)
  assert.deepEqual(await once(last, 'close'), [0, null])
  clearInterval(watch)
  assert.match(said, /^finished$/m)
  checkNames()

  await using records = openSqliteRecords(join(folder.path, 'files.db'))
  const found = await records.list('run-1')
  assert.deepEqual(found.map(({ url }) => url).sort(), paths.map((path) => server.url + path).sort())
  for (const { where, url } of found)
    assert.ok(readFileSync(fileURLToPath(where)).equals(contents.get(new URL(url).pathname)!))
  assert.equal(filesIn(store).length, FILES)
  assert.deepEqual(filesIn(join(folder.path, 'spool')), [])
  await using frontier = await openFrontier(`sqlite:${folder.path}/frontier.db`)
  const { completed, failed, remaining } = await frontier.stats()
  assert.deepEqual({ completed, failed, remaining }, { completed: 2 * FILES, failed: 0, remaining: 0 })
  assert.ok(
    server.asked.some(({ headers }) => headers.range !== undefined),
    'something was continued',
  )
  // At most what was in flight at each kill, and a file stored just before its commit, came twice.
  assert.ok(server.sent < FILES * BYTES + KILLS * 3 * BYTES, `${server.sent} bytes were sent for ${FILES * BYTES}`)
})
