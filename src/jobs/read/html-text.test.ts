/** Descriptions: repaired, readable, truncated. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cutHtml, cutText, DESCRIPTION_BYTES_MAX, htmlToText, repairHtml, tidyText } from './html-text.ts'

test('puts blocks and list items on separate lines', () => {
  const html =
    '<h2>About</h2><p>We  are<br>Acme &amp; Co.</p><script>alert(1)</script><ul><li>Go</li><li><b>Rust</b></li></ul><div>Bye</div>'
  assert.equal(htmlToText(html), 'About\n\nWe are\nAcme & Co.\n- Go\n- Rust\n\nBye')
})

test('unescapes tags once, if all of them are escaped', () => {
  assert.equal(repairHtml('&lt;p&gt;A &amp;amp; B&lt;/p&gt;'), '<p>A &amp; B</p>')
  assert.equal(repairHtml('<p>use &lt;b&gt; here</p>'), '<p>use &lt;b&gt; here</p>')
  assert.equal(htmlToText(repairHtml('<p>one&amp;#xa;two</p>')), 'one two')
})

test('keeps what fits, and never cuts a character or a tag in half', () => {
  assert.equal(Buffer.byteLength(cutText('é'.repeat(100_000))), DESCRIPTION_BYTES_MAX)
  assert.ok(!cutText('🙂'.repeat(100_000)).endsWith('\ud83d'))
  const html = `${'x'.repeat(DESCRIPTION_BYTES_MAX - 5)}<strong class="x">y</strong>`
  assert.ok(cutHtml(html).endsWith('x'))
  assert.ok(Buffer.byteLength(htmlToText(`<p>${'long text '.repeat(100_000)}</p>`)) <= DESCRIPTION_BYTES_MAX)
})

test('tidies plain text without losing its lines', () => {
  assert.equal(tidyText('a  b\r\n\r\n\r\n\tc \n\n'), 'a b\n\nc')
})

test('handles a million open tags', () => {
  for (const piece of ['<p>', '<', '</', '<li>', '&', '<!--', '<a b="', '<script>']) htmlToText(piece.repeat(65_536))
  assert.equal(htmlToText(`${'<p>'.repeat(1000)}x`), 'x')
})
