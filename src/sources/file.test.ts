import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../test/sluice.ts'
import { urlLines } from './file.ts'

test('gives the lines of a list with their numbers, without comments, empty lines, BOM and CR', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'urls.txt')
  writeFileSync(path, '\uFEFFhttp://a.example/\r\n\r\n# no\r\n  http://b.example/ \r\nhttp://c.example/')
  assert.deepEqual(await Array.fromAsync(urlLines(path)), [
    { text: 'http://a.example/', from: 'line 1' },
    { text: 'http://b.example/', from: 'line 4' },
    { text: 'http://c.example/', from: 'line 5' },
  ])
})

test('says which file cannot be read', async () => {
  await assert.rejects(Array.fromAsync(urlLines('/nowhere/urls.txt')), {
    code: 'E_USAGE',
    message: /^\/nowhere\/urls\.txt cannot be read: ENOENT/,
  })
})

test('ends with the reason when it is told to, in the middle of a list', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'urls.txt')
  writeFileSync(path, 'http://a.example/\n'.repeat(100_000))
  const stop = new AbortController()
  const reading = async () => {
    for await (const _ of urlLines(path, stop.signal)) stop.abort(new Error('enough'))
  }
  await assert.rejects(reading, /enough/)
})

test('holds a few of a million lines', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'urls.txt')
  writeFileSync(path, 'http://a.example/some/longer/path/of/a/page\n'.repeat(1_000_000))
  const before = process.memoryUsage.rss()
  let count = 0
  for await (const _ of urlLines(path)) count++
  assert.equal(count, 1_000_000)
  assert.ok(process.memoryUsage.rss() - before < 150e6, `grew by ${(process.memoryUsage.rss() - before) / 1e6} MB`)
})
