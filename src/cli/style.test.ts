import assert from 'node:assert/strict'
import { test } from 'node:test'
import { coloured } from '../observe/terminal.ts'
import { table } from './style.ts'

test('lines up columns, numbers to the right, colours not counted', () => {
  const text = table(
    [
      ['books', '1,284', 'ok'],
      [coloured('red', 'jobs'), '7', 'failed'],
    ],
    { right: [1], indent: 2 },
  )
  assert.equal(text, `  books  1,284  ok\n  ${coloured('red', 'jobs')}       7  failed`)
})
