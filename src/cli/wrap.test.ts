import assert from 'node:assert/strict'
import { test } from 'node:test'
import { wrapParagraphs } from './wrap.ts'

test('wraps paragraphs that are too wide, and leaves examples alone', () => {
  const text = 'one two three four\nfive six\n\nshort\nlines\n\n  sluice run books --a-long-flag\n'
  assert.equal(
    wrapParagraphs(text, 12),
    'one two\nthree four\nfive six\n\nshort\nlines\n\n  sluice run books --a-long-flag\n',
  )
})
