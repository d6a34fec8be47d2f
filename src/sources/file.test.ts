import assert from 'node:assert/strict'
import { truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../test/sluice.ts'
import { URL_BYTES_MAX } from '../core/url.ts'
import { urlLines } from './file.ts'

test('returns the lines of a list with their numbers, without comments, empty lines, BOM and CR', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'urls.txt')
  writeFileSync(path, '\uFEFFhttp://a.example/\r\n\r\n# no\r\n  http://b.example/ \r\nhttp://c.example/')
  assert.deepEqual(await Array.fromAsync(urlLines(path)), [
    { text: 'http://a.example/', from: 'line 1', isNamed: false },
    { text: 'http://b.example/', from: 'line 4', isNamed: false },
    { text: 'http://c.example/', from: 'line 5', isNamed: false },
  ])
})

test('finds line ends wherever the chunks of a file end', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'urls.txt')
  const PIECE_BYTES = 65_536
  for (const end of ['\r\n', '\n', '\r']) {
    const first = `http://a.example/${'é'.repeat(20)}`
    for (let shift = 0; shift < 4; shift++) {
      const space = ' '.repeat(PIECE_BYTES - Buffer.byteLength(first) - shift)
      writeFileSync(path, `${space}${first}${end}http://b.example/${end}${end}http://c.example/`)
      const found = await Array.fromAsync(urlLines(path))
      assert.deepEqual(
        found.map(({ text, from }) => [text, from]),
        [
          [first, 'line 1'],
          ['http://b.example/', 'line 2'],
          ['http://c.example/', 'line 4'],
        ],
      )
    }
  }
})

test('returns a line too long for a URL as invalid, with its number, and holds little of it', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'urls.txt')
  const longest = `http://a.example/${'x'.repeat(URL_BYTES_MAX - 'http://a.example/'.length)}`
  writeFileSync(path, `${longest}\n${longest}x\n# ${longest}\nhttp://b.example/\nhttp://c.example/`)
  truncateSync(path, 64 * 1024 ** 2) // the last line continues; read as a whole, a line of 512 MiB ended the process
  const before = process.memoryUsage.rss()
  const found = await Array.fromAsync(urlLines(path))
  assert.deepEqual(
    found.map(({ from, error }) => [from, error?.code]),
    [
      ['line 1', undefined],
      ['line 2', 'E_URL_INVALID'],
      ['line 4', undefined],
      ['line 5', 'E_URL_INVALID'],
    ],
  )
  assert.ok(found.every(({ text }) => text.length <= URL_BYTES_MAX))
  assert.match(found[1]!.error!.message, /8192 characters/)
  assert.ok(process.memoryUsage.rss() - before < 60e6, `grew by ${(process.memoryUsage.rss() - before) / 1e6} MB`)
})

test('says which file cannot be read', async () => {
  await assert.rejects(Array.fromAsync(urlLines('/nowhere/urls.txt')), {
    code: 'E_USAGE',
    message: /^\/nowhere\/urls\.txt cannot be read: ENOENT/,
  })
})

test('ends with the signal’s reason when it is aborted in the middle of a list', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'urls.txt')
  writeFileSync(path, 'http://a.example/\n'.repeat(100_000))
  const stop = new AbortController()
  const reading = async () => {
    for await (const _ of urlLines(path, stop.signal)) stop.abort(new Error('enough'))
  }
  await assert.rejects(reading, /enough/)
})

test('holds only a few of 200 MB of lines in memory', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'urls.txt')
  writeFileSync(path, `http://a.example/${'x'.repeat(4000)}\n`.repeat(50_000))
  const before = process.memoryUsage.rss()
  let count = 0
  for await (const _ of urlLines(path)) count++
  assert.equal(count, 50_000)
  assert.ok(process.memoryUsage.rss() - before < 150e6, `grew by ${(process.memoryUsage.rss() - before) / 1e6} MB`)
})
