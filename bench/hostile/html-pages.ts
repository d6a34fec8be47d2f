/** Pages designed to hang or exhaust their reader, and the expected result of each. */
import { type Behaviour, html, raw } from '../../test/site/hostile.ts'
import type { HostileCase, Outcome } from './cases.ts'

const MB = 1_048_576

const pages: readonly (readonly [name: string, expect: Outcome, html: () => string])[] = [
  ['10,000 nested tags', 'page', () => `${'<div>'.repeat(9990)}x`],
  ['100,000 nested tags', 'E_HTML_LIMIT', () => `${'<b>'.repeat(100_000)}x`],
  ['1,000,000 nested tags', 'E_HTML_LIMIT', () => '<div>'.repeat(1_000_000)],
  ['2,000,001 tags', 'E_HTML_LIMIT', () => '<a>'.repeat(2_000_001)],
  ['15 MB of paragraphs', 'page', () => '<p class=a>word</p>'.repeat(800_000)],
  ['50 MB announced', 'E_TOO_LARGE', () => 'x'.repeat(50 * MB)],
  ['an attribute of 1 MB', 'page', () => `<p title="${'x'.repeat(MB)}">x</p>`],
  ['100,000 attributes', 'page', () => `<p${Array.from({ length: 100_000 }, (_, i) => ` a${i}=${i}`).join('')}>x</p>`],
  ['NUL bytes', 'page', () => `<p>${'word '.repeat(400)}${'<p\0 a\0="\0">\0</p\0>'.repeat(100_000)}`],
  ['unclosed everything', 'page', () => `${'<p><b><a href=x><li>'.repeat(1200)}x`],
  ['a flood of comments', 'page', () => `x${'<!---->'.repeat(500_000)}`],
  ['a comment that never ends', 'page', () => `<p>x${'<!--'.repeat(MB)}`],
  ['a flood of entities', 'page', () => '&amp;&nbsp;&#39;&copy'.repeat(200_000)],
  ['8 MB of <', 'page', () => `x${'<'.repeat(8 * MB)}`],
  ['scripts that never end', 'page', () => `x${'<script>'.repeat(500_000)}`],
  ['quotes that never end', 'page', () => `x<p a="${'<b c=\'"'.repeat(300_000)}`],
  ['white space', 'page', () => `<p>${' \n'.repeat(4 * MB)}x`],
  ['bait for regular expressions', 'page', () => `<title>${'a'.repeat(MB)}!</title><p>${'1,'.repeat(4 * MB)}`],
  ['300,000 unknown tags', 'page', () => Array.from({ length: 300_000 }, (_, i) => `<x${i}></x${i}>`).join('x')],
  ['javascript: as base', 'page', () => '<base href="javascript:alert(1)"><a href="/x">x</a>'],
  ['__proto__ in JSON-LD', 'page', () => '<p>x<script type="application/ld+json">{"__proto__":{"polluted":1},"@type":"X"}</script>'],
  ['JSON-LD nested 100,000 deep', 'page', () => `<p>x<script type="application/ld+json">${'['.repeat(100_000)}</script>`],
] // biome-ignore format: a table

/** Generated on demand, so that the server does not hold all of them. */
const lazily =
  (make: () => string): Behaviour =>
  (socket, request, site) =>
    html(make(), { 'Content-Type': 'text/html; charset=utf-8' })(socket, request, site)

const chunked = `HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n`

export const HTML_PAGES: readonly HostileCase[] = [
  ...pages.map(([name, expect, make]): HostileCase => ({ name, expect, behaviour: lazily(make) })),
  {
    name: '50 MB in chunks',
    expect: 'E_TOO_LARGE',
    behaviour: (socket, request, site) =>
      raw(`${chunked}${`100000\r\n${'x'.repeat(MB)}\r\n`.repeat(50)}0\r\n\r\n`)(socket, request, site),
  },
]
