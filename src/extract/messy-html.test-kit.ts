/** Generators of messy HTML for the differential tests: everything real pages get wrong, and a bit more. */
import fc from 'fast-check'

const TAGS = (
  'a b i p p p div div span span ul ol li li li table tbody thead tfoot tr tr td td th dl dt dd h1 h2 h3 form form input button ' +
  'select option optgroup textarea title script style iframe noscript br hr img image link meta body head html svg g title ' +
  'desc path math mi mtext x-card x-card font noembed xmp ruby rt rp datalist section article pre DIV Li P'
).split(' ')

const NAMES = [
  'class',
  'id',
  'href',
  'title',
  'data-x',
  'CLASS',
  'rel',
  'type',
  'a:b',
  '@click',
  '=odd',
  'é',
  '__proto__',
]
const VALUES = [
  '',
  'a',
  'b',
  'a b',
  ' a\tb\nc ',
  'A',
  'x-y',
  'a&amp;b',
  '&lt;p&gt;',
  '?a=1&copy=2',
  '?a=1&copy;',
  'caf&eacute',
  '/x?y=1&z',
  'é',
  '>',
  '<b>',
  '/',
]

const value = fc.constantFrom(...VALUES)
const attribute = fc.oneof(
  fc.tuple(fc.constantFrom(...NAMES), value, fc.constantFrom('"', "'")).map(([n, v, q]) => `${n}=${q}${v}${q}`),
  fc.tuple(fc.constantFrom('class', 'id', 'rel'), fc.constantFrom('a', 'b', 'c', 'a b')).map(([n, v]) => `${n}="${v}"`),
  fc.tuple(fc.constantFrom(...NAMES), fc.constantFrom('a', 'b/c', 'x&y', "it's", 'a"b')).map(([n, v]) => `${n}=${v} `),
  fc.constantFrom(...NAMES),
  fc.tuple(fc.constantFrom(...NAMES), value).map(([n, v]) => `${n} = "${v}"`),
  fc.constantFrom('/', ' ', '\n', 'a="1"b="2"', "c='", 'd="', '"', '=', 'é=ü'),
)
const attributes = fc.array(attribute, { maxLength: 3 }).map((all) => all.map((it) => ` ${it}`).join(''))
const tagName = fc.constantFrom(...TAGS)
const openTag = fc
  .tuple(tagName, attributes, fc.constantFrom('>', '>', '>', '>', '/>', ' / >', ' >', '\n>'))
  .map(([name, attrs, end]) => `<${name}${attrs}${end}`)
const closeTag = fc
  .tuple(tagName, fc.constantFrom('>', '>', '>', ' >', '\n>', ' x="y">', '/>'))
  .map(([n, e]) => `</${n}${e}`)
const text = fc.constantFrom(
  'one',
  ' two ',
  '\n  three\n\tfour ',
  '5',
  '&amp;',
  '&lt;b&gt;',
  'AT&T',
  '&nbsp;',
  'x&copy y',
  '&#65;&#x42;',
  '&#128;',
  '&#0;',
  '&notit;',
  '&bogus;',
  '& ',
  '&',
  'a < b',
  '<',
  '<<',
  '< p>',
  '1 <2',
  '>',
  '"',
  "'",
  '\u00a0\u2003',
  '£',
  '日本',
  '😀',
  '\u0000',
  '\r\n',
  '&#xD800;',
  '&amp',
)
const other = fc.constantFrom(
  '<!-- c -->',
  '<!---->',
  '<!-->',
  '<!--->',
  '<!-- a -- b --!>',
  '<!-- > -->',
  '<!doctype html>',
  '<!DOCTYPE html PUBLIC "x">',
  '<!d>',
  '<!>',
  '<!x y>',
  '<!-x>',
  '<![CDATA[ c <b> & &amp; ]]>',
  '<![if IE]>',
  '<!--[if IE]><p>ie</p><![endif]-->',
  '<?xml version="1.0"?>',
  '<?>',
  '</>',
  '</ p>',
  '</3>',
  '<3>',
  '</script>',
  '</title >',
  '<!--',
  '<![CDATA[',
  '</br>',
  '</p>',
  '<script>if (a</b) "</p>"</script>',
  '<style>a>b{}</style>',
  '<textarea><p>&amp;</textarea>',
  '<title>a<b>&lt;</title>',
  '<svg><title>t<p>q</title><path/></svg>',
  '<svg><foreignObject><p>f</foreignObject></svg>',
  '<svg><style>a&amp;<b></style></svg>',
  '<math><mi>x<b>y</mi><mo/></math>',
  '<svg/>',
)

export const messyHtml = fc
  .array(
    fc.oneof(
      { weight: 5, arbitrary: openTag },
      { weight: 4, arbitrary: closeTag },
      { weight: 4, arbitrary: text },
      { weight: 2, arbitrary: other },
    ),
    {
      maxLength: 60,
      size: 'max',
    },
  )
  .map((parts) => parts.join(''))
