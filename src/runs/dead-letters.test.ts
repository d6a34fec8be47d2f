import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeadLetter, Frontier } from '../frontier/contract.ts'
import { findLetter } from './dead-letters.ts'

const frontierWith = (urls: Record<string, string>) => {
  const letters = Object.entries(urls).map(([id, url]) => ({ task: { id, url } }) as DeadLetter)
  return { dead: { list: async () => letters } } as unknown as Frontier
}

test('finds a dead letter by its URL as the list shows it', async () => {
  const frontier = frontierWith({ a1: 'http://x.test/0?token=one', a2: 'http://x.test/1?token=two' })
  assert.equal((await findLetter(frontier, 'http://x.test/1?token=***')).task.id, 'a2')
  assert.equal((await findLetter(frontier, 'http://x.test/1?token=two')).task.id, 'a2')
  await assert.rejects(findLetter(frontier, 'http://x.test/2?token=***'), /no dead letter/)
})

test('lists dead letters that look the same with their ids, and still finds one by its exact URL', async () => {
  const frontier = frontierWith({ a1: 'http://x.test/?token=one', a2: 'http://x.test/?token=two' })
  await assert.rejects(
    findLetter(frontier, 'http://x.test/?token=***'),
    (error: Error & { details: { notes: string[] } }) => {
      assert.match(error.message, /more than one dead letter is shown as/)
      assert.deepEqual(
        error.details.notes.map((line) => line.slice(0, 2)),
        ['a1', 'a2'],
      )
      return true
    },
  )
  assert.equal((await findLetter(frontier, 'http://x.test/?token=two')).task.id, 'a2')
})
