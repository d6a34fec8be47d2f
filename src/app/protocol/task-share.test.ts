import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TaskShare } from './task-share.ts'

function shareWith(requests: number) {
  let nowMs = 1000
  const share = new TaskShare({ concurrency: 60, tasksMax: 50, now: () => nowMs })
  for (let i = 0; i < 50; i++) share.learn(requests)
  const pass = (ms: number) => {
    nowMs += ms
  }
  return { share, pass }
}

test('runs few tasks of many pages at once, but as many single-page tasks as allowed', () => {
  assert.equal(shareWith(50).share.room({ active: 0, inFlight: 0 }), 2)
  assert.equal(shareWith(1).share.room({ active: 0, inFlight: 0 }), 50)
  assert.equal(shareWith(1).share.room({ active: 50, inFlight: 10 }), 0)
})

test('starts no task while all requests are in use', () => {
  assert.equal(shareWith(1).share.room({ active: 1, inFlight: 60 }), 0)
})

test('adds tasks, a few at a time, when running tasks leave requests unused', () => {
  const { share, pass } = shareWith(50)
  share.room({ active: 0, inFlight: 0 })
  assert.equal(share.room({ active: 2, inFlight: 2 }), 0)
  pass(300)
  assert.equal(share.room({ active: 2, inFlight: 2 }), 1)
  assert.equal(share.room({ active: 3, inFlight: 3 }), 0)
  pass(300)
  assert.equal(share.room({ active: 12, inFlight: 12 }), 3)
})
