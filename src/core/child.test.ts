import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { test } from 'node:test'
import { Child, startChild } from './child.ts'

const ENTRY = new URL('./child.test-kit.ts', import.meta.url)
const NEVER_MS = 600_000

/** A child that has received its order. */
async function ordered(order: 'stubborn' | 'wait') {
  const { promise, resolve } = Promise.withResolvers<string>()
  const child = startChild<string, string>(ENTRY, { onMessage: resolve })
  child.send(order)
  assert.equal(await promise, order)
  return child
}

test('ends after its last message, and all its messages arrive', async () => {
  const heard: number[] = []
  const child = startChild<string, number>(ENTRY, { onMessage: (n) => heard.push(n) })
  child.send('talk')
  assert.deepEqual(await child.ended, { how: 'exit code 3', code: 3 })
  assert.equal(heard.length, 1000)
  child.send('talk') // no process receives this
  assert.deepEqual(await child.stop(NEVER_MS), { how: 'exit code 3', code: 3 })
})

test('ends a stopped child by SIGTERM, and kills one that ignores it', async () => {
  const [obedient, stubborn] = await Promise.all([ordered('wait'), ordered('stubborn')])
  const ends = await Promise.all([obedient.stop(NEVER_MS), stubborn.stop(1)])
  assert.deepEqual(ends, [
    { how: 'SIGTERM', code: null },
    { how: 'SIGKILL', code: null },
  ])
})

test('ends on its own once it is disconnected', async () => {
  const child = await ordered('wait')
  child.disconnect()
  assert.deepEqual(await child.endsWithin(NEVER_MS), { how: 'exit code 0', code: 0 })
})

test('also ends if it cannot be started', async () => {
  const child = new Child(spawn('/nowhere/at-all'))
  assert.match((await child.ended).how, /ENOENT/)
})
