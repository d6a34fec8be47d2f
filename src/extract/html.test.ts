import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { ScrapeError } from '../core/errors.ts'
import { release, select } from './html.ts'

const page = `<!doctype html><html><head><title>Shop &amp; more</title></head><body>
  <ol class="row">
    <li><article class="product_pod"><h3><a href="../a_1/index.html?x=1&amp;y=2" title="A &quot;Light&quot;">A  Li…</a></h3>
      <p class="price_color">£51.77</p><p class="instock availability"><i class="icon-ok"></i>
        In stock
        (22 available)</p></article>
    <li><article class="product_pod sale"><h3><a title="B">B</a><a href="/b">again</a></h3><p class="price_color">sold out</p></article>
  </ol>
  <p id="about">one<script>var a = "<p>no</p>"</script> two<style>p{}</style><!-- no --> three&nbsp;&nbsp;four<br>five</p>
  <script id="data" type="application/json">{"n": [1, 2, "<b>"]}</script>
  <script id="cut">{"n": [1,</script>
  <svg viewBox="0 0 1 1"><title>Icon</title><a href="/svg">s</a></svg>
</body></html>`
const $ = select(page, 'http://shop.test/catalogue/page-2.html')

const code = (run: () => unknown): string => {
  try {
    run()
  } catch (error) {
    if (error instanceof ScrapeError) return `${error.code}: ${error.message}`
    throw error
  }
  return 'no error'
}

test('returns text trimmed and collapsed, with entities decoded', () => {
  assert.equal($.text('title'), 'Shop & more')
  assert.equal($.text('p.availability'), 'In stock (22 available)')
})

test('omits scripts, styles and comments from text', () => {
  assert.equal($.text('#about'), 'one two three four' + 'five')
})

test('returns a script’s own text when asked for it', () => {
  assert.equal($.text('#data'), '{"n": [1, 2, "<b>"]}')
})

test('returns the text of the place itself without a selector', () => {
  assert.deepEqual(
    $.all('h3').map((h3) => h3.text()),
    ['A Li…', 'Bagain'],
  )
  assert.match($.text(), /^Shop & more A Li… £51\.77/)
})

test('looks only inside the place', () => {
  const [first, second] = $.all('article.product_pod')
  assert.equal(first!.text('p.price_color'), '£51.77')
  assert.equal(second!.text('p.price_color'), 'sold out')
  assert.equal(first!.exists('#about'), false)
  assert.equal(second!.all('a').length, 2)
  assert.equal(second!.exists('> h3 > a'), true)
  assert.equal(second!.exists('> a'), false)
})

test('lets the leftmost part of a selector match the place itself, and nothing outside it', () => {
  const [place] = select('<div><b></b><div id=s><p>x</p></div></div>', 'http://h/').all('#s')
  assert.equal(place!.exists('div > p'), true)
  assert.equal(place!.exists('div > div p'), false)
  assert.equal(place!.exists('div > div > p'), false)
  assert.equal(place!.exists('b + div p'), false)
  assert.equal(place!.exists('b ~ div p'), false)
  assert.equal(place!.exists('div div p'), false)
})

test('continues after a self-closing script in SVG', () => {
  assert.equal(select('<svg><script/>x<style/>y</svg>', 'http://h/').text('svg'), 'xy')
})

test('reads numbers', () => {
  assert.equal($.number('p.price_color'), 51.77)
  assert.equal($.number('p.availability'), 22)
  assert.equal($.all('article')[1]!.number('p.price_color', { optional: true }), undefined)
  assert.equal(
    code(() => $.all('article')[1]!.number('p.price_color')),
    'E_SELECTOR_EMPTY: "p.price_color" found no number, only "sold out" inside "article"',
  )
})

test('returns attributes decoded, links absolute', () => {
  assert.equal($.attr('h3 > a', 'title'), 'A "Light"')
  assert.equal($.attr('h3 > a', 'href'), 'http://shop.test/a_1/index.html?x=1&y=2')
  assert.equal($.attr('svg', 'viewbox'), '0 0 1 1')
})

test('takes the first match that has the attribute', () => {
  assert.equal($.all('article')[1]!.attr('a', 'href'), 'http://shop.test/b')
})

test('returns an element’s own attribute unchanged', () => {
  assert.equal($.all('h3 > a')[0]!.ownAttr('href'), '../a_1/index.html?x=1&y=2')
  assert.equal($.all('h3 > a')[0]!.ownAttr('TITLE'), 'A "Light"')
  assert.equal($.all('h3 > a')[0]!.ownAttr('id'), undefined)
  assert.equal($.ownAttr('id'), undefined)
})

test('reads JSON out of a script', () => {
  assert.deepEqual($.json('#data'), { n: [1, 2, '<b>'] })
  assert.equal($.json('#nothing', { optional: true }), undefined)
  assert.match(
    code(() => $.json('#cut')),
    /^E_JSON_INVALID: "#cut": /,
  )
})

test('returns inner and outer HTML as a browser does', () => {
  assert.equal($.html('svg'), '<title>Icon</title><a href="/svg">s</a>')
  assert.equal($.all('h3')[1]!.html(), '<a title="B">B</a><a href="/b">again</a>')
  assert.equal($.html(), page)
  assert.equal($.html('br'), '')
  assert.equal($.outerHtml('br'), '<br>')
  const [row] = select("<table><td a=1 b='\"'>&lt;x&nbsp;", 'http://h/').all('tr')
  assert.equal(select('x', 'http://h/').outerHtml(), '<html><head></head><body>x</body></html>')
  assert.equal(row!.outerHtml(), '<tr><td a="1" b="&quot;">&lt;x&nbsp;</td></tr>')
})

test('fails with the selector if nothing matches', () => {
  assert.equal(
    code(() => $.text('h2.missing')),
    'E_SELECTOR_EMPTY: "h2.missing" found nothing',
  )
  assert.equal(
    code(() => $.all('article')[0]!.attr('h3', 'id')),
    'E_SELECTOR_EMPTY: "h3" found no element with a usable id inside "article"',
  )
  assert.match(
    code(() => $.html('h2')),
    /^E_SELECTOR_EMPTY/,
  )
  assert.equal($.text('h2', { optional: true }), undefined)
  assert.equal($.number('h2', { optional: true }), undefined)
  assert.equal($.attr('h2', 'id', { optional: true }), undefined)
  assert.deepEqual($.all('h2'), [])
  assert.equal($.exists('h2'), false)
})

test('reports invalid CSS selectors', () => {
  for (const css of ['h2[', '', 'a,', 'a:nonsense', 'a::before', 'svg|a', ':not(']) {
    assert.match(
      code(() => $.exists(css)),
      /^E_SELECTOR_INVALID/,
      css,
    )
  }
})

test('answers modern selectors itself, and leaves jQuery’s to cheerio', () => {
  assert.equal($.text('article:has(a[title=B]) .price_color'), 'sold out')
  assert.equal($.number('p:contains("51")'), 51.77)
  assert.equal($.all('li:first-of-type')[0]!.attr('a', 'title'), 'A "Light"')
  assert.equal($.all('article:is(.sale)')[0]!.text('a:last-of-type'), 'again')
  assert.equal($.all('article')[0]!.exists(':is(a)[title=B]'), false)
})

test('offers cheerio on the same tree', () => {
  assert.equal($.cheerio('article').length, 2)
  assert.equal($.cheerio('title').first().text(), 'Shop & more')
  assert.equal($.cheerio('li').first().children().attr('class'), 'product_pod')
})

test('resolves against base href, unless that is not an http(s) URL', () => {
  const attr = (base: string): string => select(`<base href="${base}"><a href="x">`, 'http://h/d/p').attr('a', 'href')
  assert.equal(attr('/other/'), 'http://h/other/x')
  assert.equal(attr('https://cdn.test/y/z'), 'https://cdn.test/y/x')
  assert.equal(attr('javascript:alert(1)//'), 'http://h/d/x')
  assert.equal(attr('data:text/html,'), 'http://h/d/x')
  assert.equal(attr('http://['), 'http://h/d/x')
  assert.equal(
    select('<base target=_top><base href=/1/><base href=/2/><a href=x>', 'http://h/').attr('a', 'href'),
    'http://h/1/x',
  )
})

test('skips a link that is not a URL', () => {
  assert.equal(select('<a href="http://[">1</a><a href="/ok">2</a>', 'http://h/').attr('a', 'href'), 'http://h/ok')
  assert.match(
    code(() => select('<a href="http://[">', 'http://h/').attr('a', 'href')),
    /no element with a usable href/,
  )
})

test('indexes a released page again if it is used later', () => {
  const late = select('<ul><li>1<li>2</ul>', 'http://h/')
  const items = late.all('li')
  release(late)
  const other = select('<b>x</b><i>y</i><u>z</u>', 'http://h/')
  assert.equal(other.text('u'), 'z')
  assert.deepEqual(
    items.map((li) => li.text()),
    ['1', '2'],
  )
  assert.equal(other.text('i'), 'y')
})

test('returns strings that do not keep the page in memory', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const kept: string[] = []
  collect()
  const before = process.memoryUsage().heapUsed
  for (let i = 0; i < 200; i++) {
    const html = `<p title="a title longer than thirteen ${i}">a text longer than thirteen ${i}</p><a href="/a/path/longer/than/thirteen/${i}"><b>a&amp;b longer than thirteen</b>${'x'.repeat(200_000)}${i}`
    const big = select(Buffer.from(html).toString(), 'http://h/')
    kept.push(
      big.attr('a', 'href'),
      big.text('b'),
      big.text('p'),
      big.attr('p', 'title'),
      big.all('p')[0]!.ownAttr('title')!,
      big.html('p'),
    )
  }
  collect()
  assert.ok(process.memoryUsage().heapUsed - before < 10e6)
  assert.equal(kept.length, 1200)
})
