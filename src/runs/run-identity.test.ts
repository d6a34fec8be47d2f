import assert from 'node:assert/strict'
import { resolve } from 'node:path'
import { test } from 'node:test'
import { RunFolder } from './run-folder.ts'
import { absolutePlace, cacheStoreOf, frontierUrlOf, urlOfPlace } from './run-identity.ts'

test('normalises a place, however its scheme is written', () => {
  assert.equal(absolutePlace('SQLITE:x.db'), `sqlite:${resolve('x.db')}`)
  assert.equal(absolutePlace('SQLITE:x.db'), absolutePlace('sqlite://x.db'))
  for (const own of ['sqlite', 'SQLITE:', 'Sqlite']) assert.equal(absolutePlace(own), 'sqlite:')
  assert.equal(absolutePlace('POSTGRES://user:secret@db/Books'), 'postgres://user@db/Books')
})

test('puts sqlite: without a file in the run folder, however it is written', () => {
  const folder = new RunFolder('runs/books/1')
  for (const own of ['sqlite:', 'sqlite', 'SQLITE:'])
    assert.equal(frontierUrlOf(own, folder), `sqlite:${resolve('runs/books/1/frontier.db')}`)
  assert.equal(frontierUrlOf('SQLITE:x.db', folder), 'sqlite:x.db')
})

test('opens the URL given now if it is the same place: only it may have the password', () => {
  const given = 'postgres://user:secret@db/books'
  assert.equal(urlOfPlace('postgres://user@db/books', given), given)
  assert.equal(urlOfPlace('POSTGRES://user@db/books', given), given)
  assert.equal(urlOfPlace('postgres://user@db/other', given), 'postgres://user@db/other')
})

test('uses the Redis of the run for a cache in redis:', () => {
  assert.equal(cacheStoreOf({ cacheStore: 'REDIS:', frontier: 'redis://h:1/2' }), 'redis://h:1/2')
  assert.equal(cacheStoreOf({ cacheStore: 'sqlite:x.db', frontier: 'memory:' }), 'sqlite:x.db')
})
