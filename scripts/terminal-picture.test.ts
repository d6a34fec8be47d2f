/** The picture keeps its columns in browsers, which collapse spaces in SVG text. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { terminalPicture } from './terminal-picture.ts'

const textsOf = (svg: string) => [...svg.matchAll(/<text x="([\d.]+)"[^>]*textLength[^>]*>([^<]*)</g)]

test('puts each column in its place without relying on spaces', () => {
  const svg = terminalPicture('  \x1b[2mpages   \x1b[0m1,048 ok \x1b[31m2 failed\x1b[0m\nitems      998  new\n', 'x')
  assert.deepEqual(
    textsOf(svg).map(([, x, text]) => [Number(x), text]),
    [
      [32.8, 'pages'],
      [100, '1,048 ok'],
      [175.6, '2 failed'],
      [16, 'items'],
      [108.4, '998'],
      [150.4, 'new'],
    ],
  )
})

test('draws a bar as one piece, to an eighth of a cell', () => {
  const svg = terminalPicture('\x1b[32m███▌\x1b[39m  88 %\n', 'x')
  assert.match(svg, /<rect x="16" y="51" width="29.4" height="16" fill="#8fd19e"\/>/)
  assert.doesNotMatch(svg, /█/)
})

test('the picture in the README has no text that a browser would stretch', () => {
  const svg = readFileSync(new URL('../docs/pictures/demo.svg', import.meta.url), 'utf8')
  const texts = textsOf(svg).map(([, , text]) => text!)
  assert.ok(texts.length > 50)
  assert.deepEqual(
    texts.filter((text) => text !== text.trim() || text.includes('  ')),
    [],
  )
})
