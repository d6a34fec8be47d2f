import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { every } from './every.ts'

test('a timer continues after its body threw or rejected, and reports the error', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.after(() => mock.timers.reset())
  const errors: string[] = []
  let turns = 0
  const body = () => {
    turns++
    if (turns === 1) throw new Error('at once')
    if (turns === 2) return Promise.reject(new Error('later'))
    return undefined
  }
  const timer = every(body, 10, (error) => errors.push((error as Error).message))
  mock.timers.tick(30)
  clearInterval(timer)
  mock.timers.tick(30)
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual([turns, errors], [3, ['at once', 'later']])
})
