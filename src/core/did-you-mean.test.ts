import assert from 'node:assert/strict'
import { test } from 'node:test'
import { didYouMean, editDistance } from './did-you-mean.ts'

const COMMANDS = ['run', 'crawl', 'retry', 'resume', 'robots', 'explain', 'export', 'doctor']

test('counts edits, with a swap of neighbours as one', () => {
  assert.deepEqual(
    [editDistance('', 'abc'), editDistance('kitten', 'sitting'), editDistance('rnu', 'run'), editDistance('a', 'a')],
    [3, 3, 1, 0],
  )
})

test('finds the word that was meant', () => {
  assert.equal(didYouMean('rnu', COMMANDS), 'run')
  assert.equal(didYouMean('exprot', COMMANDS), 'export')
  assert.equal(didYouMean('EXPLIAN', COMMANDS), 'explain')
  assert.equal(didYouMean('doc', COMMANDS), 'doctor')
})

test('suggests nothing when nothing is close', () => {
  assert.equal(didYouMean('banana', COMMANDS), undefined)
  assert.equal(didYouMean('', COMMANDS), undefined)
  assert.equal(didYouMean('x'.repeat(100_000), COMMANDS), undefined)
})
