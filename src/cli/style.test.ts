import assert from 'node:assert/strict'
import { test } from 'node:test'
import { coloured } from '../observe/terminal.ts'
import { table } from './style.ts'

test('aligns columns, numbers to the right, not counting colours', () => {
  const text = table(
    [
      ['books', '1,284', 'ok'],
      [coloured('red', 'jobs'), '7', 'failed'],
    ],
    { right: [1], indent: 2 },
  )
  assert.equal(text, `  books  1,284  ok\n  ${coloured('red', 'jobs')}       7  failed`)
})
