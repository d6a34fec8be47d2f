import assert from 'node:assert/strict'
import { test } from 'node:test'
import { load } from 'cheerio/slim'
import { type ChildNode, Comment, Document, Element, Text } from 'domhandler'
import fc from 'fast-check'
import { type DefaultTreeAdapterTypes, parse } from 'parse5'
import { ScrapeError } from '../core/errors.ts'
import { attributeOf } from './attributes.ts'
import { findAll, findFirst } from './match.ts'
import { messyHtml } from './messy-html.test-kit.ts'
import { indexPage } from './page-index.ts'
import { compile } from './selector.ts'
import { siblingsOf } from './siblings.ts'

// ——— Compared with css-select on parse5's tree ———

/** css-select does not know quirks mode. */
const strictHtml = messyHtml.map((html) => `<!doctype html>${html}`)

function theirTree(html: string): Document {
  return linked(new Document(childrenOf(parse(html, { scriptingEnabled: false }))))
}

function linked<T extends Document | Element>(node: T): T {
  for (const [i, child] of node.children.entries()) {
    child.parent = node
    child.prev = node.children[i - 1] ?? null
    child.next = node.children[i + 1] ?? null
  }
  return node
}

/** The content of a template is not among its children. */
function childrenOf(node: DefaultTreeAdapterTypes.ParentNode): ChildNode[] {
  return node.childNodes.flatMap((child): ChildNode[] => {
    if (child.nodeName === '#text') return [new Text((child as DefaultTreeAdapterTypes.TextNode).value)]
    if (!('tagName' in child)) return [new Comment('')]
    const attributes = child.attrs.map(({ prefix, name, value }) => [prefix ? `${prefix}:${name}` : name, value])
    return [linked(new Element(child.tagName, Object.fromEntries(attributes), childrenOf(child)))]
  })
}

const simple = fc.oneof(
  fc.constantFrom('p', 'div', 'li', 'a', 'span', 'td', 'tr', '*', 'x-card', 'b', 'title', 'input', 'svg', 'body', 'P'),
  fc.constantFrom(
    '.a',
    '.b',
    '#a',
    '[class]',
    '[id=a]',
    '[class~=b]',
    '[title^="a"]',
    '[href$="y=1&z"]',
    '[class*="b"]',
  ),
  fc.constantFrom('[data-x|=x]', '[class="A" i]', '[title="a&b"]', '[CLASS=a s]', '[id="A" i]', '.\\61 ', '#\\000061'),
  fc.constantFrom(
    ':first-child',
    ':last-child',
    ':only-child',
    ':first-of-type',
    ':last-of-type',
    ':only-of-type',
    ':empty',
  ),
  fc.constantFrom(':nth-child(2)', ':nth-child(2n+1)', ':nth-child(-n+2)', ':nth-child(even)', ':nth-child(odd)'),
  fc.constantFrom(':nth-last-child(2)', ':nth-last-child(-n+2)', ':nth-of-type(2)', ':nth-of-type(3n - 1)', ':root'),
  fc.constantFrom(':nth-last-of-type(2n)', ':nth-last-of-type(1)', ':nth-child(+2n + 1)', ':nth-child(0)'),
)
const combinator = fc.constantFrom(' ', ' > ', ' + ', ' ~ ')

const { complex } = fc.letrec<{ compound: string; complex: string; list: string; has: string }>((tie) => ({
  compound: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    simple,
    fc.tuple(simple, fc.constantFrom('.a', '.b', '[id]', ':first-child', ':nth-of-type(2)')).map(([a, b]) => a + b),
    fc
      .tuple(fc.constantFrom('', 'p', 'div'), fc.constantFrom('not', 'is', 'where'), tie('list'))
      .map(([tag, name, list]) => `${tag}:${name}(${list})`),
    fc.tuple(fc.constantFrom('', 'p', 'div'), tie('has')).map(([tag, has]) => `${tag}:has(${has})`),
  ),
  complex: fc
    .tuple(tie('compound'), fc.array(fc.tuple(combinator, tie('compound')), { maxLength: 3 }))
    .map(([first, rest]) => first + rest.flat().join('')),
  list: fc.array(tie('complex'), { minLength: 1, maxLength: 2 }).map((all) => all.join(', ')),
  // To css-select, the first compound of `:has(a b)` may be the element itself, and in `:has(:not(a b))` nothing above it may be `a`.
  has: fc.oneof(
    simple,
    fc
      .tuple(fc.constantFrom('> ', '+ ', '~ '), simple, fc.array(fc.tuple(combinator, simple), { maxLength: 2 }))
      .map(([leading, first, rest]) => leading + first + rest.flat().join('')),
  ),
}))
const anySelector = fc.array(complex, { minLength: 1, maxLength: 3 }).map((all) => all.join(', '))

/** Each element's number in page order, in both trees. */
function compare(html: string) {
  const index = indexPage(html)
  const $ = load(theirTree(html) as never)
  const tokens = findAll(index, compile('*'), -1)
  const elements = $('*').toArray() as unknown as Element[]
  assert.equal(tokens.length, elements.length)
  const numberOfToken = new Map(tokens.map((token, i) => [token, i]))
  const numberOfElement = new Map<unknown, number>(elements.map((element, i) => [element, i]))
  return {
    $,
    index,
    tokens,
    elements,
    ours: (css: string, scope: number) => findAll(index, compile(css), scope).map((token) => numberOfToken.get(token)),
    theirs: (found: unknown[]) => found.map((element) => numberOfElement.get(element)),
  }
}

test('finds what css-select finds, for any selector in any messy page', () => {
  fc.assert(
    fc.property(strictHtml, fc.array(anySelector, { minLength: 1, maxLength: 8 }), (html, selectors) => {
      const { $, index, ours, theirs } = compare(html)
      for (const css of selectors) {
        assert.notEqual(compile(css).alternatives, undefined, css)
        const found = ours(css, -1)
        assert.deepEqual(found, theirs($(css).toArray()), css)
        assert.equal(findFirst(index, compile(css), -1) !== -1, found.length > 0, css)
      }
    }),
    { numRuns: 500 },
  )
})

test('looks only inside a place, as cheerio’s find does', () => {
  fc.assert(
    fc.property(strictHtml, anySelector, fc.constantFrom('', '> ', '+ ', '~ '), simple, (html, css, leading, last) => {
      const { $, ours, theirs, tokens, elements } = compare(html)
      for (const [i, element] of elements.entries()) {
        if (element.parent?.type !== 'tag') continue
        assert.deepEqual(
          ours(css, tokens[i]!),
          theirs(
            $(element as never)
              .find(css)
              .toArray(),
          ),
          css,
        )
        assert.deepEqual(
          ours(leading + last, tokens[i]!),
          theirs(
            $(element as never)
              .find(leading + last)
              .toArray(),
          ),
          leading + last,
        )
      }
    }),
    { numRuns: 300 },
  )
})

test('leaves jQuery’s extensions to cheerio', () => {
  for (const css of [
    'p:contains(x)',
    'li:eq(1)',
    'li:first',
    ':header',
    'a:not(:input)',
    '[a!=b]',
    'a:has(:contains(x))',
  ])
    assert.equal(compile(css).alternatives, undefined, css)
})

// ——— What css-select does not know, or does differently from a browser ———

/** The ids of what is found: on the page, or in the element with the id `place`. */
function ids(html: string, css: string, place?: string): string {
  const index = indexPage(html)
  const scope = place === undefined ? -1 : findFirst(index, compile(`[id="${place}"]`), -1)
  const found = findAll(index, compile(css), scope)
  return found.map((token) => attributeOf(index, token, 'id') ?? '?').join(' ')
}

/** A page, and what each selector finds in it. */
function finds(title: string, html: string, expected: Record<string, string>, place?: string): void {
  test(title, () => {
    for (const [css, found] of Object.entries(expected))
      assert.equal(ids(`<!doctype html>${html}`, css, place), found, css)
  })
}

finds(
  'counts only the siblings that match with “of S”',
  '<ul><li id=1 class=x><li id=2><li id=3 class="x y"><li id=4 class=x></ul><ol><li id=5 class=x></ol><p id=p class=of>',
  {
    'li:nth-child(2 of .x)': '3',
    ':nth-child(odd of .x)': '1 4 5',
    'li:nth-child(2n+1 OF li.x:not(.y), [id="2"])': '1 4 5',
    ':nth-last-child(1 of .x)': '4 5',
    ':nth-last-child( -n + 2 of ul > .x)': '3 4',
    ':nth-child(1 of :nth-child(2 of .x))': '3',
    ':nth-child(1 of .x):nth-last-child(1 of .x)': '5',
    ':not(:nth-child(n of .x))[id]': '2 p',
    'ul:has(:nth-child(3 of .x)) > li:nth-child(1)': '1',
    'p.of, [id="p of"]': 'p',
  },
)

finds(
  'counts every kind of position',
  '<section id=s><b id=1></b><i id=2></i><b id=3></b>text<!-- c --><i id=4></i><b id=5></b></section>',
  {
    'section > :nth-child(n)': '1 2 3 4 5',
    'html:nth-child(n) section': 's',
    'section > :nth-child(-n + 2)': '1 2',
    'section > :nth-child(N+4)': '4 5',
    'section > :nth-child(+3)': '3',
    'section > :nth-child(-2)': '',
    'section > :nth-child(0n+2)': '2',
    'section > :nth-last-child(2n)': '2 4',
    'b:nth-of-type(2)': '3',
    'b:nth-last-of-type(n+2)': '1 3',
    'i:first-of-type, i:last-of-type': '2 4',
    'section:only-of-type, b:only-of-type': 's',
  },
)

finds(
  'finds elements by what they contain or precede',
  '<div id=a class=o><div id=b><p id=c></p><i id=d></i></div></div><div id=e><p id=f>x</p><u id=g></u><i id=h></i></div>',
  {
    'div:has(p)': 'a b e',
    'div:has(> p)': 'b e',
    'div:has(div p)': 'a',
    'div:has(:is(div p))': 'a b e',
    'p:has(+ i)': 'c',
    'p:has(~ i)': 'c f',
    'div:has(> p ~ i)': 'b e',
    'div:has(> p + u + i)': 'e',
    'div:has(+ div > u)': 'a',
    'div:has(> :is(u, b), > div)': 'a e',
    'div:not(:has(u)):has(i)': 'a b',
    'div:has(:not(p, i, div))': 'e',
    'div:has(> div:has(> p:empty))': 'a',
    'div:has(:scope > u)': 'e',
    ':has(> u):has(> p) > i': 'h',
    'body:has(x-none)': '',
    'div:is(.o, #e):has(p)': 'a e',
  },
)

finds(
  'takes the place for :scope, and looks beside it after a leading + or ~',
  '<ul id=u><li id=1><b id=b1></b><li id=2><b id=b2><b id=b3></b></b><li id=3><b id=b4></b><li id=4></ul><p id=p>',
  {
    ':scope > b': 'b2',
    ':scope b b': 'b3',
    ':scope': '',
    '> b': 'b2',
    '> b > b': 'b3',
    '+ li': '3',
    '+ li b': 'b4',
    '~ li': '3 4',
    '~ li:nth-child(4), > b': 'b2 4',
    'b, + p': 'b2 b3',
    '+ li:has(b)': '3',
    '~ :nth-child(2 of :has(b), :empty)': '',
    ':nth-child(2 of li) > b': 'b2',
    ':nth-last-child(3 of li) > b': 'b2',
    'li:has(> b) b': 'b2 b3',
    'li:has(+ li) b': '',
  },
  '2',
)

finds('takes the root element for :scope on a page', '<p id=a><p id=b>', {
  ':scope > body > p': 'a b',
  '> html > body > p': 'a b',
  '> body > p': '',
  '+ p, ~ p': '',
  'p:scope': '',
})

finds(
  'knows what an empty element is',
  '<p id=1></p><p id=2> </p><p id=3><!-- c --></p><p id=4><b id=b></b></p><br id=5><p id=6>&nbsp;</p><p id=7>\0</p><pre id=8>\n</pre>',
  { '[id]:empty': '1 3 b 5 7 8', 'p:not(:empty)': '2 4 6', ':not(:empty) > b': 'b' },
)

finds(
  'knows the language of elements',
  '<body lang=en><p id=1><p id=2 lang=de-Latn-CH><b id=b lang="">x</b><i id=i></i><p id=3 lang=DE-ch><p id=4 lang=deutsch><svg id=s xml:lang=fr>',
  {
    'p:lang(en)': '1',
    'p:lang(de)': '2 3',
    ':lang(de-CH)': '2 i 3',
    ':lang("*-CH")': '2 i 3',
    ':lang(de-x)': '',
    ':lang(fr, "en")[id]': '1 s',
    'b:lang("")': 'b',
    'p:not(:lang(de))': '1 4',
  },
)

finds(
  'knows the language a meta element says',
  '<meta http-equiv=Content-Language content="nl"><p id=1><p id=2 lang=fr>',
  {
    'p:lang(nl)': '1',
  },
)

finds(
  'compares case as HTML does',
  '<DIV ID=a CLASS=Big TYPE=Text data-x=Y><svg id=s viewBox="0 0 1 1" type=Text><foreignObject id=f></foreignObject><linearGradient id=g>',
  {
    DIV: 'a',
    'div[CLASS]': 'a',
    '.big': '',
    '.Big': 'a',
    '#A': '',
    '[type=text]': 'a',
    '[type=text s]': '',
    '[type=text i]': 'a s',
    '[data-x=y]': '',
    '[data-x="y" i]': 'a',
    '[DATA-X=Y S]': 'a',
    'foreignObject, LINEARGRADIENT': 'f g',
    '[viewBox]': 's',
  },
)

test('ignores the case of classes and ids in quirks mode', () => {
  const html = '<p id=A class="Red x">'
  for (const css of ['.red', '.RED.X', '#a', 'p:not(#b, .blue)']) assert.equal(ids(html, css), 'A', css)
  for (const css of ['[id=a]', '[class~=red]', '.re']) assert.equal(ids(html, css), '', css)
  assert.equal(ids(`<!doctype html>${html}`, '.red'), '')
})

finds(
  'reads escapes and odd attribute values',
  `<p id="123" class="a:b sm:w-1/2"><p id=":x" title='"'><p id="é" class="É x\u00a0y"><p id=a&amp;b title=""><p id=w class="a\vb">`,
  {
    '#\\31 23': '123',
    '#\\:x': ':x',
    '.a\\:b': '123',
    '.sm\\:w-1\\/2': '123',
    '#é': 'é',
    '#\\E9': 'é',
    '#\\0000e9': 'é',
    'html #\\E9 , b': 'é',
    '.\\C9 x': '',
    '.\\C9 , x': 'é',
    '.x': '',
    '.é': '',
    '#a\\&b': 'a&b',
    '[title=""]': 'a&b',
    '[title=\\"]': ':x',
    "[title='\"']": ':x',
    '[title^=""], [title*=""], [title$=""], [class~=""], [class~="a:b sm:w-1/2"]': '',
    '.b': '',
    ':nth-child(1 of .a\\:b)': '123',
  },
)

finds('knows namespaces only as “any” and “none”', '<a id=a href=/><svg><a id=b xlink:href=/></svg>', {
  '*|a': 'a b',
  '|a': '',
  '*|*[id]': 'a b',
  '[*|href]': 'a b',
  '[|href]': 'a',
})

finds(
  'does not look into templates',
  '<div id=d><template id=t><p id=1></p><template id=t2><p id=2></p></template></template><p id=3></p></div>',
  {
    p: '3',
    '*[id]': 'd t 3',
    'div:has(p + template)': '',
    'template:has(p)': '',
    'template p': '',
    'template:empty': 't',
    'p, b': '3',
  },
)
finds(
  'looks into a template from the template',
  '<template id=t><p id=1><template id=t2><p id=2></template></template><p id=3>',
  { p: '1', '> p': '1', 'p:has(template)': '1' },
  't',
)

finds(
  'knows the state of form controls and links as the page says it',
  `<fieldset id=f disabled><legend><input id=1></legend><legend><input id=2></legend><input id=3 required><select id=4><option id=5>
  <option id=6 disabled></select></fieldset><input id=7 type=checkbox checked><input id=8 readonly><input id=9><textarea id=10 required></textarea>
  <select id=11><option id=12><option id=13 selected></select><a id=14 href=/></a><a id=15></a><p id=16 contenteditable>`,
  {
    ':disabled': 'f 2 3 4 6',
    ':enabled': '1 5 7 8 9 10 11 12 13',
    ':checked': '5 7 13',
    ':required': '3 10',
    ':optional': '1 2 4 7 8 9 11',
    ':read-write': '1 9 10 16',
    'input:read-only': '2 3 7 8',
    ':link': '14',
    ':any-link': '14',
  },
)

test('says what it does not support', () => {
  const why = (css: string): string => {
    try {
      compile(css)
    } catch (error) {
      if (error instanceof ScrapeError && error.code === 'E_SELECTOR_INVALID') return error.message
      throw error
    }
    return 'compiled'
  }
  assert.equal(why('a:hover'), '"a:hover" is not a valid CSS selector: :hover is not supported, it needs a live page')
  assert.match(why('p:not(a:focus-within)'), /:focus-within is not supported/)
  assert.match(why('p:nonsense'), /:nonsense is not supported/)
  assert.match(why('p:nonsense(1)'), /:nonsense is not supported/)
  assert.match(why('p::before'), /::before/)
  assert.match(why('p:first-line'), /::first-line/)
  assert.match(why('svg|a'), /namespaces are not supported: svg\|/)
  assert.match(why('[xlink|href]'), /namespaces are not supported: xlink\|/)
  assert.match(why('td || p'), /column combinator/)
  assert.match(why(':host-context(p)'), /:host-context is not supported/)
  assert.match(why(':nth-child(2):host-context(p)'), /:host-context is not supported/)
  for (const css of [
    '',
    ' ',
    'a,',
    ',a',
    'a >',
    'a > > b',
    ':nth-child(x)',
    ':nth-child(2 n)',
    ':nth-child(2 of)',
    ':nth-child()',
    ':lang()',
    ':not()',
    'a:not(',
    '[a',
    'a)',
    ':nth-of-type(2 of a)',
    ':nth-child',
  ])
    assert.match(why(css), /is not a valid CSS selector/, css)
})

// ——— Time ———

/** How often the arrays of the index are read. */
function readsOf(html: string, css: string): number {
  let reads = 0
  const counted = (array: Int32Array): Int32Array =>
    new Proxy(array, {
      get: (target, key) => {
        reads++
        return Reflect.get(target, key)
      },
    })
  const index = indexPage(html)
  const { previous, position, lastChild } = siblingsOf(index)
  findAll(
    {
      ...index,
      tag: counted(index.tag),
      parent: counted(index.parent),
      siblings: { previous: counted(previous), position: counted(position), lastChild: counted(lastChild) },
    },
    compile(css),
    -1,
  )
  return reads
}

test('reads twice as much of a page twice as large, for any selector', () => {
  const pages: ((n: number) => string)[] = [
    (n) => '<div class=a>'.repeat(n),
    (n) => '<i class=a></i><b></b>'.repeat(n),
    (n) => `${'<div>'.repeat(n)}${'<b></b>'.repeat(n)}`,
    (n) => `<p>${'<!---->'.repeat(n)}${'<b></b>'.repeat(n)}`,
    (n) => '<div><p><b></b></p><i></i></div>'.repeat(n),
  ]
  const selectors = [
    '.x .a .a .a',
    '.x ~ .a ~ b ~ b',
    ':not(.x *) :is(.x > * b, i)',
    ':has(.x)',
    ':has(b)',
    'div:has(div.a):not(:has(.x))',
    ':has(~ .x), :has(~ b ~ b ~ i)',
    ':has(> b + i) :has(div .a)',
    ':nth-last-child(2n) b, :nth-of-type(3), :nth-last-of-type(2)',
    ':nth-child(2 of .a), :nth-last-child(2 of :not(.x *))',
    ':not(:empty) > b',
    ':lang(en), :lang(de) b',
    ':enabled, :checked',
  ]
  for (const page of pages) {
    for (const css of selectors) {
      const small = readsOf(page(500), css)
      const large = readsOf(page(1000), css)
      assert.ok(large < 2.1 * small + 100, `${css} in ${page(1)}: ${small} reads, then ${large}`)
    }
  }
})
