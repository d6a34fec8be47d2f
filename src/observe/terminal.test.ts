import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  bar,
  coloured,
  displayWidth,
  isTerminal,
  paintFor,
  plain,
  printable,
  printableData,
  truncate,
  truncateMiddle,
  wrap,
} from './terminal.ts'

const tty = { write() {}, isTTY: true, columns: 80 }
const pipe = { write() {} }

test('colours only a terminal', () => {
  assert.equal(paintFor(tty, {}), coloured)
  assert.equal(paintFor(pipe, {}), plain)
  assert.equal(paintFor(tty, { TERM: 'dumb' }), plain)
})

test('obeys NO_COLOR before anything else', () => {
  assert.equal(paintFor(tty, { NO_COLOR: '1', FORCE_COLOR: '1' }), plain)
  assert.equal(paintFor(tty, { NO_COLOR: '' }), coloured)
  assert.equal(paintFor(pipe, { FORCE_COLOR: '1' }), coloured)
  assert.equal(isTerminal(tty, { TERM: 'dumb' }), false)
})

test('measures columns, not characters', () => {
  assert.equal(displayWidth('books'), 5)
  assert.equal(displayWidth(coloured('red', 'books')), 5)
  assert.equal(displayWidth('書籍'), 4)
  assert.equal(displayWidth('e\u0301'), 1)
})

test('cuts a coloured text to its columns and closes the colour', () => {
  const cut = truncate(coloured('red', 'abcdefgh'), 5)
  assert.equal(displayWidth(cut), 5)
  assert.ok(cut.includes('abcd') && cut.endsWith('\x1b[0m…'))
  assert.equal(truncate('書籍書籍', 5), '書籍…')
  assert.equal(truncate('abc', 3), 'abc')
  assert.equal(truncateMiddle('runs/books/2026/items.jsonl', 16), 'runs/b…ems.jsonl')
})

test('fills a bar only when everything is done', () => {
  assert.equal(bar(0, 4), '    ')
  assert.equal(bar(0.57, 10), '█████▋    ')
  assert.equal(bar(0.999, 4), '███▉')
  assert.equal(bar(1, 4), '████')
  assert.equal(bar(Number.NaN, 2), '  ')
})

test('keeps escape sequences and line breaks from the web out of the terminal', () => {
  assert.equal(printable('a\x1b[2Jb\r\nc\u0007d'), 'ab c d')
  assert.doesNotMatch(printable('\u009b31mred\u0085\u2028\x1b]0;title\x07'), /\p{Cc}|\u2028/u)
})

test('printed text cannot reverse the text beside it', () => {
  assert.equal(printable('a\u202egnp.exe\u2066\u200fb'), 'agnp.exeb')
  assert.equal(printable('tok\u001b[1men=hunter2'), 'token=***', 'an escape sequence does not hide a name')
  assert.equal(printableData('?token=x\u202e'), '?token=x')
})

test('wraps between words, and cuts a word that is too long for a line', () => {
  assert.deepEqual(wrap('one two three', 7), ['one two', 'three'])
  assert.deepEqual(wrap('one abcdefgh', 5), ['one', 'abcd…'])
  assert.deepEqual(wrap('', 5), [''])
})
