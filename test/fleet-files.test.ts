/** Complete runs with files: requested by pages, stored by file processes, recorded, on one machine and on a fleet. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { FileRecord } from '../src/files/contract.ts'
import { content, startFileServer } from './files/file-server.ts'
import { Fleet, until } from './fleet.ts'
import { postgresForTests } from './services/postgres.ts'
import { startS3 } from './services/s3.ts'
import { sluice, startSluice, temporaryFolder } from './sluice.ts'

const PAGES = 6
const FILES_PER_PAGE = 5
const FILE_BYTES = 40_000

const GALLERY = `
  import { defineScraper } from 'sluice'
  import * as z from 'zod'
  export default defineScraper({
    name: 'gallery', item: z.object({ url: z.string() }), routes: { page: {} }, args: z.object({ site: z.url() }),
    start: ({ args, enqueue }) => enqueue('page', Array.from({ length: ${PAGES} }, (_, i) => new URL('/page/' + i, args.site))),
    handlers: {
      async page({ $, url, emit, file }) {
        await emit({ url: url.href })
        for (const link of $.all('a')) await file(link.ownAttr('href'))
      },
    },
  })`

/** Page i links to its own files and to one that all pages share. */
async function startGallery(slow?: (response: ServerResponse, body: Buffer) => void) {
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const [, kind, name = ''] = (request.url ?? '').split('/')
    if (kind === 'robots.txt') return response.writeHead(404).end()
    if (kind === 'page') {
      const own = Array.from({ length: FILES_PER_PAGE }, (_, i) => `<a href="/file/${name}-${i}.bin">file</a>`)
      response.setHeader('content-type', 'text/html')
      return response.end(`${own.join('')}<a href="/file/shared.bin">file</a>`)
    }
    const body = bytesOf(name)
    response.setHeader('content-length', body.length)
    if (slow !== undefined) return slow(response, body)
    return response.end(body)
  }
  return await startFileServer({ '*': answer })
}

const bytesOf = (name: string) =>
  content(FILE_BYTES, [...name].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7) % 100_000)
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const nameOf = (url: string) => url.slice(url.lastIndexOf('/') + 1)

function folderWithScraper() {
  const folder = temporaryFolder()
  mkdirSync(join(folder.path, 'scrapers'))
  writeFileSync(join(folder.path, 'scrapers', 'gallery.ts'), GALLERY)
  return folder
}

/** Every file once, with the right bytes where the record says. */
function checkRecords(lines: string, read?: (where: string) => Buffer): void {
  const records = lines
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as FileRecord)
  assert.equal(records.length, PAGES * FILES_PER_PAGE + 1)
  assert.equal(new Set(records.map(({ url }) => url)).size, records.length)
  for (const { url, bytes, sha256: hash, where } of records) {
    const expected = bytesOf(nameOf(url))
    assert.equal(bytes, FILE_BYTES)
    assert.equal(hash, sha256(expected), url)
    if (read !== undefined) assert.ok(read(where).equals(expected), where)
  }
}

/** For the processes that a test starts. */
function withEnv(env: Record<string, string>): Disposable {
  const before = Object.keys(env).map((name) => [name, process.env[name]] as const)
  Object.assign(process.env, env)
  return {
    [Symbol.dispose]() {
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name]
        else process.env[name] = value
      }
    },
  }
}

const onDisk = (where: string) => readFileSync(fileURLToPath(where))

test('stores each file once in a bucket with two fleet workers, and its record in the database', async () => {
  await using database = await postgresForTests()
  await using bucket = await startS3()
  await using site = await startGallery()
  using folder = folderWithScraper()
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path, scraper: 'gallery' })
  const { run_id: runId } = await fleet.start('--site', site.url)
  using _env = withEnv(bucket.env)
  const ends = await Promise.all([1, 2].map(() => fleet.worker(runId, '--files', bucket.url('g')).result))
  for (const { code, stderr } of ends) assert.equal(code, 0, stderr)
  const { stdout } = await fleet.run('files', runId, '--json')
  checkRecords(stdout)
  const stored = bucket.files().filter((name) => name.endsWith('.bin._S3rver_object'))
  assert.equal(stored.length, PAGES * FILES_PER_PAGE + 1, stored.join('\n'))
  const { completed, remaining, items } = await fleet.stats(runId)
  const FILES = PAGES * FILES_PER_PAGE + 1
  assert.deepEqual({ completed, remaining, items }, { completed: PAGES + 2 * FILES, remaining: 0, items: PAGES })
})

test('has every file complete and recorded once after kill -9 during downloads and a resume', async () => {
  let isSlow = true
  const held: (() => void)[] = []
  await using site = await startGallery((response, body) => {
    response.write(body.subarray(0, 10_000))
    const finish = () => response.end(body.subarray(10_000))
    if (isSlow) held.push(finish)
    else finish()
  })
  using folder = folderWithScraper()
  const given = [
    'run',
    'gallery',
    '--site',
    site.url,
    '--rps',
    '0',
    '--concurrency',
    '8',
    '--out',
    join(folder.path, 'runs'),
  ]
  const { child, result } = startSluice(given, { cwd: folder.path })
  await until('downloads are under way', () => held.length >= 3)
  child.kill('SIGKILL')
  await result
  isSlow = false
  const { code, stderr, stdout: resumed } = await sluice([...given, '--resume', '--json'], { cwd: folder.path })
  assert.equal(code, 0, stderr)
  // The counts of the killed process are gone; the confirmed figures are not.
  const { pages, files } = JSON.parse(resumed)
  const FILES = PAGES * FILES_PER_PAGE + 1
  assert.deepEqual([pages.ok, pages.failed, files.stored + files.same, files.recorded], [PAGES, 0, FILES, FILES])
  const { stdout } = await sluice(['files', '--out', join(folder.path, 'runs'), '--json'], { cwd: folder.path })
  checkRecords(stdout, onDisk)
})

test('shares the files of a run among several local processes', async () => {
  await using site = await startGallery()
  using folder = folderWithScraper()
  const given = [
    'run',
    'gallery',
    '--site',
    site.url,
    '--rps',
    '0',
    '--processes',
    '2',
    '--out',
    join(folder.path, 'runs'),
  ]
  const { code, stdout, stderr } = await sluice([...given, '--json'], { cwd: folder.path })
  assert.equal(code, 0, stderr)
  const { pages, files } = JSON.parse(stdout)
  assert.deepEqual([pages.ok, pages.failed, files.stored, files.recorded], [PAGES, 0, 31, 31])
  const listed = await sluice(['files', '--out', join(folder.path, 'runs'), '--json'], { cwd: folder.path })
  checkRecords(listed.stdout, onDisk)
})

test('turns files that cannot be fetched into dead letters, too many of which fail the run', async () => {
  await using site = await startGallery((response) => response.writeHead(403).end())
  using folder = folderWithScraper()
  const out = join(folder.path, 'runs')
  const given = ['run', 'gallery', '--site', site.url, '--rps', '0', '--retries', '0', '--out', out, '--json']
  const { code, stdout } = await sluice(given, { cwd: folder.path })
  assert.equal(code, 1)
  const { pages, files, reason } = JSON.parse(stdout)
  assert.deepEqual([pages.ok, pages.failed, files.stored, files.failed], [PAGES, 0, 0, PAGES * FILES_PER_PAGE + 1])
  assert.match(reason, /100.0 % of files failed/)
  const groups = await sluice(['dlq', 'groups', '--out', out, '--json'], { cwd: folder.path })
  assert.match(groups.stdout, /E_FORBIDDEN/)
})
