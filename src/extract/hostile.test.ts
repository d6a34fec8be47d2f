import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { cpuMs } from '../../test/cpu-time.ts'
import { ScrapeError } from '../core/errors.ts'
import { allLinks, release, select } from './html.ts'

const MB = 1 << 20
/** Large enough: quadratic work takes longer than `readAll` allows. */
const MANY = 100_000

/** Everything a handler may call, on a page designed to hang it. Generous: linear work takes a tenth of this. */
function readAll(html: string): string {
  let outcome = ''
  const tookMs = cpuMs(() => {
    outcome = outcomeOf(html)
  })
  assert.ok(tookMs < 2500, `took ${Math.round(tookMs)} ms`)
  return outcome
}

function outcomeOf(html: string): string {
  const $ = select(html, 'http://h/')
  try {
    $.text()
    $.text('p', { optional: true })
    $.all('b b, i ~ i, div > p + p, :not(a)').length
    $.exists('.a .b .c > .d')
    $.exists('x ~ y')
    $.exists('li:nth-child(3)')
    $.attr('a', 'zzz', { optional: true })
    $.number('p', { optional: true })
    $.jsonLd()
    allLinks($, 'http://h/')
    return 'read'
  } catch (error) {
    if (error instanceof ScrapeError) return error.code
    throw error
  } finally {
    release($)
  }
}

test('refuses 1,000,000 nested tags', () => {
  assert.equal(readAll('<div>'.repeat(1_000_000)), 'E_HTML_LIMIT')
  assert.equal(readAll('<b>'.repeat(100_000) + '</b>'.repeat(100_000)), 'E_HTML_LIMIT')
  assert.equal(readAll('<x-y>'.repeat(10_001)), 'E_HTML_LIMIT')
})

test('reads 10,000 nested tags, with cheerio too', () => {
  const html = `${'<div class=a>'.repeat(9999)}<p>x</p>`
  assert.equal(readAll(html), 'read')
  const $ = select(html, 'http://h/')
  assert.equal($.cheerio('p').text(), 'x')
  assert.equal($.text('div:has(p)'), 'x')
  assert.throws(() => $.text('div:has(p:contains(x))'), { code: 'E_HTML_LIMIT' }) // css-select's own stack
})

test('walks long chains of ancestors and siblings only once', () => {
  assert.equal(readAll('<i>'.repeat(9990) + '<b></b>'.repeat(MANY)), 'read')
  assert.equal(readAll('<i></i><y></y>'.repeat(100_000)), 'read')
  assert.equal(readAll(`${'<b>'.repeat(2000)}${'</x></y></z>'.repeat(100_000)}`), 'read')
})

test('reads 100,000 attributes on one tag', () => {
  const names = Array.from({ length: 100_000 }, (_, i) => ` a${i}=${i}`).join('')
  const $ = select(`<p${names}>x</p>`, 'http://h/')
  assert.equal($.attr('p', 'a99999'), '99999')
  assert.equal($.text('p[a5="5"]'), 'x')
  assert.equal($.cheerio('p').attr('a7'), '7')
  assert.equal(readAll(`<p ${'a '.repeat(MANY)}>x</p>`), 'read')
})

test('reads attributes of many megabytes', () => {
  const value = 'x '.repeat(2 * MB)
  const $ = select(`<p class="${value}last" title='${value}'>t</p>`, 'http://h/')
  assert.equal($.exists('p.last'), true)
  assert.equal($.attr('p', 'title').length, value.length)
  assert.equal(readAll(`<a href="/${'y'.repeat(8 * MB)}">`), 'read')
})

for (const [what, html] of Object.entries({
  '50 MB of <': '<'.repeat(50 * MB),
  '4 MB of text': 'a '.repeat(2 * MB),
  'a flood of &': '&'.repeat(MB),
  'a flood of entities': '&amp;&nbsp;&#39;&copy'.repeat(MANY),
  'a flood of comments': '<!---->'.repeat(MANY),
  'a comment that never ends': `<p>x${'<!--'.repeat(MB)}`,
  'a comment full of dashes': `<!--${'-'.repeat(2 * MB)}`,
  'a flood of <!': '<!'.repeat(2 * MB),
  'a flood of </': '</'.repeat(2 * MB),
  'quotes that never end': `<p a="${'<b c=\'"'.repeat(MANY)}`,
  'unclosed everything': '<p><b><a href=x><li>'.repeat(1200) + '<table><tr><td>'.repeat(5),
  'scripts that never end': '<script>'.repeat(MANY),
  'script ends that are none': `<script>${'</scrip'.repeat(MB)}`,
  'titles full of beginnings': `<title>${'<'.repeat(MB)}&amp;`,
  'many siblings': '<p>'.repeat(MANY),
  'many unknown tags': Array.from({ length: MANY }, (_, i) => `<x${i}></x${i}>`).join(''),
  'CDATA that never ends': `<svg>${'<![CDATA['.repeat(MANY)}`,
  'NUL bytes': '<p\0 a\0="\0">\0</p\0>'.repeat(MANY),
  'white space': `<p>${' \n'.repeat(MB)}x`,
  digits: `<p>${'1,'.repeat(MB)}`,
  'megabytes of spaces in a tag': `<p${' '.repeat(2 * MB)}>`,
  'slashes in a tag': `<p${'/'.repeat(2 * MB)}>`,
  'equal signs in a tag': `<p${' ='.repeat(MB)}>`,
})) {
  test(`is done quickly with ${what}`, () => {
    const outcome = readAll(html)
    assert.ok(outcome === 'read' || outcome === 'E_HTML_LIMIT', outcome)
  })
}

test('refuses more tags than it has memory for', () => {
  assert.equal(readAll('<a>'.repeat(2_000_001)), 'E_HTML_LIMIT')
})

test('reads the text of millions of pieces in a heap of 40 MB', async () => {
  const html = new URL('html.ts', import.meta.url).href
  const script = `const { select } = await import(${JSON.stringify(html)})
    for (const piece of ['&amp;&amp;', '&copy&copy', '<p>word</p>'])
      select(Buffer.from(piece.repeat(900_000)).toString('latin1'), 'http://h/').text()`
  await promisify(execFile)(process.execPath, ['--max-old-space-size=40', '--input-type=module', '-e', script])
})

test('one bad link never affects the others', () => {
  const bad = [
    'http://',
    'http://[::1',
    'http://h:99999/',
    '//',
    'http:///x',
    '\\\\h\\x',
    'ht tp://x',
    '%',
    `/${'z'.repeat(MB)}`,
  ]
  const html = `${bad.map((href) => `<a href="${href}">`).join('')}<a href="/good">`
  assert.ok(allLinks(html, 'http://h/').some(({ url }) => url === 'http://h/good'))
})
