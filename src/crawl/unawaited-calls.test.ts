import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { UnawaitedCalls } from './unawaited-calls.ts'

const fails = async () => {
  await null
  throw new Error('no such route')
}

test('waits for calls that are not awaited', async () => {
  const calls = new UnawaitedCalls()
  const { promise, resolve } = Promise.withResolvers<void>()
  void calls.watch(promise)
  let isSettled = false
  const settled = calls.settle().then(() => {
    isSettled = true
  })
  await turn()
  assert.equal(isSettled, false)
  resolve()
  await settled
})

test('reports the failure of a call that is not awaited, once it has ended', async () => {
  const calls = new UnawaitedCalls()
  void calls.watch(Promise.resolve())
  void calls.watch(fails())
  await turn() // an unhandled rejection would end the process here
  await assert.rejects(calls.settle(), /no such route/)
})

test('ignores failures that the scraper handles', async () => {
  const calls = new UnawaitedCalls()
  await assert.rejects(async () => await calls.watch(fails()), /no such route/)
  assert.equal(await calls.watch(fails()).catch(() => 'handled'), 'handled')
  const results = await Promise.allSettled([calls.watch(fails()), calls.watch(Promise.resolve(1))])
  assert.deepEqual(results.map(({ status }) => status), ['rejected', 'fulfilled']) // biome-ignore format: one line reads better
  assert.equal(await calls.watch(Promise.resolve(1)).finally(() => {}), 1)
  await calls.settle()
})
