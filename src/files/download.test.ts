/** Downloads from a real server that cuts connections, lies, and changes its files. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { content, type FileServer, serveFile, startFileServer } from '../../test/files/file-server.ts'
import { downloadJob, filesIn, never, streamOptions } from '../../test/files/rig.ts'
import { temporaryFolder } from '../../test/sluice.ts'
import { ScrapeError } from '../core/errors.ts'
import type { ByteSource } from '../fetch/contract.ts'
import { openByteStream } from '../fetch/http/byte-stream.ts'
import { type Downloaded, download } from './download.ts'
import { openPart, spoolId, tidySpool } from './spool.ts'

const FILE = content(300_000)
const SHA256 = createHash('sha256').update(FILE).digest('hex')

let server: FileServer
let source: ByteSource
let folder: ReturnType<typeof temporaryFolder>
let spool: string

before(async () => {
  server = await startFileServer()
  source = openByteStream(streamOptions())
  folder = temporaryFolder()
  spool = join(folder.path, 'spool')
})
after(async () => {
  await source[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

/** A separate path for each test; also forgets earlier requests. */
let paths = 0
function serve(answer: ReturnType<typeof serveFile>): string {
  const path = `/file-${++paths}`
  server.paths.set(path, answer)
  server.asked.length = 0
  server.sent = 0
  return server.url + path
}

async function fetchOnce(url: string, bytesMax = 10_000_000): Promise<Downloaded> {
  return await download(downloadJob(url), { source, spool, bytesMax }, never)
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return await work.then(
    () => 'done',
    (error: unknown) => (error instanceof ScrapeError ? error.code : String(error)),
  )
}

async function finish(done: Downloaded): Promise<void> {
  await done.part.remove()
  assert.deepEqual(filesIn(spool), [], 'the spool is empty again')
}

/** Cuts the first response after `bytes`, then behaves. */
function cutOnce(bytes: number): () => number | undefined {
  let cuts = 0
  return () => (cuts++ === 0 ? bytes : undefined)
}

describe('a download', () => {
  it('has all bytes, their hash, type and name', async () => {
    const url = serve(serveFile(FILE, { headers: { 'content-disposition': 'attachment; filename="x.bin"' } }))
    const done = await fetchOnce(url)
    assert.ok(readFileSync(done.part.path).equals(FILE))
    const { bytes, sha256, name, fetchedBytes } = done
    assert.deepEqual({ bytes, sha256, name, fetchedBytes }, { bytes: FILE.length, sha256: SHA256, name: 'x.bin', fetchedBytes: FILE.length }) // biome-ignore format: one line reads better
    await finish(done)
  })

  it('resumes after a cut, and requests only the rest', async () => {
    const url = serve(serveFile(FILE, { etag: '"v1"', cutAfter: cutOnce(200_000) }))
    assert.equal(await codeOf(fetchOnce(url)), 'E_BODY_SHORT')
    const done = await fetchOnce(url)
    assert.equal(done.sha256, SHA256)
    assert.ok(readFileSync(done.part.path).equals(FILE))
    assert.match(server.asked[1]!.headers.range!, /^bytes=\d+-$/)
    assert.equal(server.asked[1]!.headers['if-range'], '"v1"')
    assert.equal(server.sent, FILE.length, 'no byte was sent twice')
    assert.ok(done.fetchedBytes < FILE.length)
    await finish(done)
  })

  it('resumes by date if there is no ETag', async () => {
    const lastModified = 'Sun, 15 Nov 2020 08:00:00 GMT'
    const url = serve(serveFile(FILE, { lastModified, cutAfter: cutOnce(100_000) }))
    assert.equal(await codeOf(fetchOnce(url)), 'E_BODY_SHORT')
    const done = await fetchOnce(url)
    assert.equal(done.sha256, SHA256)
    assert.equal(server.asked[1]!.headers['if-range'], lastModified)
    await finish(done)
  })

  it('starts over if neither response states the total length', async () => {
    let answers = 0
    const url = serve((request, response) => {
      const from = Number(/\d+/.exec(request.headers.range ?? '')?.[0] ?? -1)
      if (answers++ === 0) return void response.writeHead(200, { etag: '"v1"' }).write(FILE.subarray(0, 100_000), () => response.destroy()) // biome-ignore format: one line reads better
      if (from < 0) return serveFile(FILE, { etag: '"v1"' })(request, response)
      const headers = { etag: '"v1"', 'content-length': 1000, 'content-range': `bytes ${from}-${from + 999}/*` }
      response.writeHead(206, headers).end(FILE.subarray(from, from + 1000))
    })
    assert.equal(await codeOf(fetchOnce(url)), 'E_BODY_SHORT')
    const done = await fetchOnce(url)
    assert.deepEqual([done.bytes, done.sha256], [FILE.length, SHA256])
    await finish(done)
  })

  it('keeps name and type if the rest comes without them', async () => {
    const headers = { 'content-disposition': 'attachment; filename="report.csv"', 'content-type': 'text/csv' }
    const url = serve(serveFile(FILE, { etag: '"v1"', headers, cutAfter: () => 100_000 }))
    assert.equal(await codeOf(fetchOnce(url)), 'E_BODY_SHORT')
    server.paths.set(new URL(url).pathname, serveFile(FILE, { etag: '"v1"' }))
    const done = await fetchOnce(url)
    assert.ok(done.fetchedBytes < FILE.length)
    assert.deepEqual([done.name, done.contentType], ['report.csv', 'text/csv'])
    await finish(done)
  })

  for (const [what, options] of [
    ['has no validator', {}],
    ['has a weak one', { etag: 'W/"v1"' }],
    ['has a date of this very second', { lastModified: new Date(Date.now() + 60_000).toUTCString() }],
  ] as const)
    it(`starts over if the first response ${what}`, async () => {
      const url = serve(serveFile(FILE, { ...options, cutAfter: cutOnce(100_000) }))
      assert.equal(await codeOf(fetchOnce(url)), 'E_BODY_SHORT')
      const done = await fetchOnce(url)
      assert.equal(server.asked[1]!.headers.range, undefined)
      assert.equal(done.sha256, SHA256)
      await finish(done)
    })

  it('starts over if the file has changed in the meantime', async () => {
    const url = serve(serveFile(content(300_000, 7), { etag: '"old"', cutAfter: () => 100_000 }))
    assert.equal(await codeOf(fetchOnce(url)), 'E_BODY_SHORT')
    server.paths.set(new URL(url).pathname, serveFile(FILE, { etag: '"new"' }))
    const done = await fetchOnce(url)
    assert.equal(done.sha256, SHA256)
    assert.ok(readFileSync(done.part.path).equals(FILE))
    await finish(done)
  })

  const lies: Record<string, (from: number) => Record<string, string>> = {
    'another start': (from) => ({ 'content-range': `bytes ${from - 10}-${FILE.length - 1}/${FILE.length}` }),
    'another total': (from) => ({ 'content-range': `bytes ${from}-${FILE.length + 9}/${FILE.length + 10}` }),
    'another ETag': (from) => ({ 'content-range': `bytes ${from}-${FILE.length - 1}/${FILE.length}`, etag: '"v2"' }),
    'no range at all': () => ({}),
    'a piece of an unknown whole': (from) => ({ 'content-range': `bytes ${from}-${FILE.length - 2}/*` }),
    'only a piece': (from) => ({ 'content-range': `bytes ${from}-${FILE.length - 2}/${FILE.length}` }),
  }
  for (const [lie, headersFor] of Object.entries(lies))
    it(`starts over if the rest has ${lie}`, async () => {
      const url = serve(serveFile(FILE, { etag: '"v1"', cutAfter: cutOnce(100_000) }))
      assert.equal(await codeOf(fetchOnce(url)), 'E_BODY_SHORT')
      server.paths.set(new URL(url).pathname, (request, response) => {
        const from = Number(/\d+/.exec(request.headers.range ?? '')?.[0] ?? -1)
        if (from < 0) serveFile(FILE, { etag: '"v1"' })(request, response)
        else response.writeHead(206, { etag: '"v1"', ...headersFor(from) }).end(content(FILE.length - from, 9))
      })
      const done = await fetchOnce(url)
      assert.equal(done.sha256, SHA256)
      assert.ok(readFileSync(done.part.path).equals(FILE))
      await finish(done)
    })

  it('starts over if the server says that there is no rest', async () => {
    const url = serve(serveFile(FILE, { etag: '"v1"', cutAfter: cutOnce(100_000) }))
    assert.equal(await codeOf(fetchOnce(url)), 'E_BODY_SHORT')
    server.paths.set(new URL(url).pathname, (request, response) => {
      if (request.headers.range !== undefined) response.writeHead(416).end()
      else serveFile(FILE)(request, response)
    })
    const done = await fetchOnce(url)
    assert.equal(done.sha256, SHA256)
    await finish(done)
  })

  it('does not request a complete file again', async () => {
    const url = serve(serveFile(FILE))
    const first = await fetchOnce(url)
    first.part.release() // the store was unreachable
    const done = await fetchOnce(url)
    assert.equal(server.asked.length, 1)
    assert.deepEqual([done.sha256, done.fetchedBytes], [SHA256, 0])
    await finish(done)
  })

  it('leaves a part to its owner if that may only be asleep', async () => {
    const url = serve(serveFile(FILE, { etag: '"v1"' }))
    const asleep = await fetchOnce(url) // not released: it could still write
    const done = await fetchOnce(url)
    assert.notEqual(done.part.path, asleep.part.path)
    assert.notEqual(statSync(done.part.path).ino, statSync(asleep.part.path).ino)
    await done.part.remove()
    assert.ok(existsSync(asleep.part.path))
    await asleep.part.remove()
    assert.deepEqual(filesIn(spool), [])
  })

  it('is not started if it is announced as too large', async () => {
    const url = serve(serveFile(FILE))
    assert.equal(await codeOf(fetchOnce(url, 299_999)), 'E_FILE_TOO_LARGE')
    assert.deepEqual(filesIn(spool), [])
  })

  it('stops at the limit if it never ends', async () => {
    const tenGigabytes = 10 * 1024 ** 3
    const chunk = Buffer.alloc(65_536)
    const url = serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'video/mp4' })
      const more = () => {
        while (!response.destroyed && server.sent < tenGigabytes) if (!response.write(chunk)) return
      }
      response.on('drain', more)
      more()
    })
    assert.equal(await codeOf(fetchOnce(url, 5_000_000)), 'E_FILE_TOO_LARGE')
    assert.ok(server.sent < 20_000_000, `${server.sent} bytes were sent`)
    assert.deepEqual(filesIn(spool), [])
  })

  it('stops at the limit even if only its decompressed size exceeds it', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000))
    const url = serve((_request, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb))
    assert.equal(await codeOf(fetchOnce(url, 1_000_000)), 'E_FILE_TOO_LARGE')
    assert.deepEqual(filesIn(spool), [])
  })

  it('is stored decompressed if it was compressed without being asked', async () => {
    const url = serve((request, response) => {
      assert.equal(request.headers['accept-encoding'], 'identity')
      response.writeHead(200, { 'content-encoding': 'gzip', etag: '"z"' }).end(gzipSync(FILE))
    })
    const done = await fetchOnce(url)
    assert.equal(done.sha256, SHA256)
    await finish(done)
  })

  it('yields no file if it is compressed and damaged', async () => {
    const url = serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(FILE).subarray(0, 1000))
    })
    assert.equal(await codeOf(fetchOnce(url)), 'E_ENCODING')
    assert.deepEqual(filesIn(spool), [])
  })

  it('yields no file if it is shorter than announced', async () => {
    const url = serve((_request, response) => {
      response.writeHead(200, { 'content-length': FILE.length + 1 })
      response.write(FILE, () => response.destroy())
    })
    assert.equal(await codeOf(fetchOnce(url)), 'E_BODY_SHORT')
  })

  it('leaves nothing if the file is gone', async () => {
    const url = serve(serveFile(FILE, { etag: '"v1"', cutAfter: () => 100_000 }))
    assert.equal(await codeOf(fetchOnce(url)), 'E_BODY_SHORT')
    server.paths.delete(new URL(url).pathname)
    assert.equal(await codeOf(fetchOnce(url)), 'E_NOT_FOUND')
    assert.equal(
      filesIn(spool).some((name) => name.includes(downloadJob(url).task.id)),
      false,
    )
  })
})

describe('the spool', () => {
  it('removes old parts, then the oldest beyond the size limit, and nothing that is not its own', async () => {
    using place = temporaryFolder()
    const nowMs = Date.now()
    const HOUR_MS = 3_600_000
    const add = (name: string, ageMs: number) => {
      mkdirSync(join(place.path, name))
      writeFileSync(join(place.path, name, 'x.part'), Buffer.alloc(1000))
      utimesSync(join(place.path, name, 'x.part'), (nowMs - ageMs) / 1000, (nowMs - ageMs) / 1000)
    }
    const id = (digit: string) => `run.${digit.repeat(64)}`
    add(id('1'), 48 * HOUR_MS)
    add(id('2'), 5 * HOUR_MS)
    add(id('3'), 4 * HOUR_MS)
    add(id('4'), 0)
    add('somebody-elses', 1000 * HOUR_MS)
    assert.equal(await tidySpool(place.path, { bytesMax: 2500 }, nowMs), 2000)
    assert.deepEqual(filesIn(place.path), [`${id('3')}/x.part`, `${id('4')}/x.part`, 'somebody-elses/x.part'])
  })

  it('removes browser downloads that no task can refer to any more', async () => {
    using place = temporaryFolder()
    const nowMs = Date.now()
    mkdirSync(join(place.path, 'uploads'))
    for (const [name, days] of [
      ['orphan', 8],
      ['waits', 3],
    ] as const) {
      const path = join(place.path, 'uploads', name)
      writeFileSync(path, Buffer.alloc(100))
      utimesSync(path, nowMs / 1000 - days * 86_400, nowMs / 1000 - days * 86_400)
    }
    assert.equal(await tidySpool(place.path, {}, nowMs), 100)
    assert.deepEqual(filesIn(place.path), ['uploads/waits'])
  })

  it('prefers a complete part to a longer incomplete one', async () => {
    using place = temporaryFolder()
    const job = { runId: 'run', taskId: '5'.repeat(64) }
    const note = { url: 'http://x.example/', finalUrl: 'http://x.example/' }
    // Owners sort by time of arrival: the complete one first, so that the longer one comes after it.
    const whole = await openPart(place.path, job)
    writeFileSync(whole.path, 'whole')
    const longer = await openPart(place.path, job)
    writeFileSync(longer.path, 'longer, but not whole')
    await whole.save({ ...note, whole: 'abc' })
    await longer.save(note)
    for (const part of [whole, longer]) part.release()
    const next = await openPart(place.path, job)
    assert.equal(next.note?.whole, 'abc')
    assert.equal(readFileSync(next.path, 'utf8'), 'whole')
  })

  it('has one id, whichever process asks first', async () => {
    using place = temporaryFolder()
    const spool = join(place.path, 'spool')
    const ids = await Promise.all(Array.from({ length: 10 }, () => spoolId(spool)))
    assert.equal(new Set(ids).size, 1)
    assert.equal(await spoolId(spool), ids[0])
    assert.deepEqual(filesIn(spool), ['id'])
  })
})
