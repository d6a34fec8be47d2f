import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allLinks, anchors, select } from './html.ts'

const page = `<base href="/dir/"><a href="a">A  link</a> <a href=" b ">B</a> <a>none</a> <a href="http://[">bad</a> <a href="">self</a>
<a href="mailto:x@y">m</a> <a href="javascript:void(0)">j</a> <a href="/c" rel="NoFollow external" data-k=v>C</a>
<map><area href=d></map> <a href="a">again</a> <a href=//other.test/e?x=1&y=2#f>E</a> <svg><a xlink:href="/svg">s</a></svg>
<!-- <a href="/comment"> --><script>'<a href="/script">'</script><textarea><a href="/textarea"></textarea><a href="data:text/html,x">d</a>`
const base = 'http://h.test/p.html'

test('returns every web link of a page once, absolute, in page order', () => {
  assert.deepEqual(
    allLinks(page, base).map((link) => link.url),
    [
      'http://h.test/dir/a',
      'http://h.test/dir/b',
      'http://h.test/dir/',
      'http://h.test/c',
      'http://h.test/dir/d',
      'http://other.test/e?x=1&y=2',
      'http://h.test/svg',
    ],
  )
})

test('flags links that ask not to be followed', () => {
  const link = allLinks(page, base).find(({ url }) => url.endsWith('/c'))
  assert.deepEqual(link, { url: 'http://h.test/c', rel: 'nofollow external', nofollow: true })
  const whole = allLinks('<meta name=ROBOTS content="noindex, nofollow"><a href=x>', base)
  assert.deepEqual(whole, [{ url: 'http://h.test/x', rel: '', nofollow: true }])
})

test('stops at the maximum number of links', () => {
  assert.equal(allLinks(page, base, { max: 2 }).length, 2)
})

test('counts links to several anchors of one page once, and skipped links by reason', () => {
  const html = '<a href=x#1><a href=x#2><a href=y><a href=z><a href="z#3"><a href=mailto:a@b.test><a href="http://[">'
  const leftOut = {}
  const links = allLinks(html, base, { max: 2, leftOut })
  assert.deepEqual(
    links.map(({ url }) => url),
    ['http://h.test/x', 'http://h.test/y'],
  )
  assert.deepEqual(leftOut, { links: 1, scheme: 1, url: 1 })
})

test('returns texts if requested', () => {
  assert.equal(allLinks(page, base, { text: true })[0]!.text, 'A link')
})

test('returns anchors for following, and counts those that are not URLs', () => {
  const $ = select(page, base)
  const found = anchors($, 'a')
  assert.equal(found.bad, 1)
  assert.deepEqual(
    found.anchors.map(({ href, text }) => [href, text]),
    [
      ['http://h.test/dir/a', 'A link'],
      ['http://h.test/dir/b', 'B'],
      ['http://h.test/dir/', 'self'],
      ['http://h.test/c', 'C'],
      ['http://h.test/dir/a', 'again'],
      ['http://other.test/e?x=1&y=2#f', 'E'],
      ['http://h.test/svg', 's'],
    ],
  )
  assert.equal(found.anchors[3]!.attr('data-k'), 'v')
  assert.deepEqual(anchors($, '.missing'), { anchors: [], bad: 0, otherSchemes: 0 })
})
