/** Tag names as small numbers, and what the HTML standard's tree construction says about each. */

const NAMES = (
  'a abbr acronym address annotation-xml applet area article aside audio b base basefont bdi bdo bgsound big blink blockquote body ' +
  'br button canvas caption center cite circle code col colgroup data datalist dd defs del desc details dfn dialog dir div dl dt em ' +
  'embed fieldset figcaption figure font footer foreignobject form frame frameset g h1 h2 h3 h4 h5 h6 head header hgroup hr html i ' +
  'iframe image img input ins kbd keygen label legend li line link listing main malignmark map mark marquee math menu meta meter ' +
  'mglyph mi mn mo ms mtext nav nobr noembed noframes noscript object ol optgroup option output p param path picture plaintext ' +
  'polygon pre progress q rb rect rp rt rtc ruby s samp script search section select slot small source span strike strong style sub ' +
  'summary sup svg symbol table tbody td template text textarea tfoot th thead time title tr track tt u ul use var video wbr xmp'
).split(' ')

/** Ids below this are known everywhere; a page numbers its own unknown names from here on. */
export const KNOWN = NAMES.length

const idByName = new Map(NAMES.map((name, id) => [name, id]))

export function knownTagId(name: string): number {
  return idByName.get(name) ?? -1
}

export function knownTagName(id: number): string {
  return NAMES[id]!
}

const ids = (names: string): number[] => names.split(' ').map((name) => idByName.get(name)!)
const mask = (names: string): Uint8Array => {
  const bits = new Uint8Array(KNOWN)
  for (const id of ids(names)) bits[id] = 1
  return bits
}

const id = (name: string): number => idByName.get(name)!

/** Written out, not computed: V8 reads the properties of a literal ten times as fast. */
export const TAG = {
  a: id('a'),
  address: id('address'),
  'annotation-xml': id('annotation-xml'),
  base: id('base'),
  body: id('body'),
  br: id('br'),
  button: id('button'),
  caption: id('caption'),
  col: id('col'),
  colgroup: id('colgroup'),
  dd: id('dd'),
  desc: id('desc'),
  div: id('div'),
  dt: id('dt'),
  font: id('font'),
  foreignobject: id('foreignobject'),
  form: id('form'),
  frame: id('frame'),
  frameset: id('frameset'),
  head: id('head'),
  hr: id('hr'),
  html: id('html'),
  image: id('image'),
  img: id('img'),
  input: id('input'),
  keygen: id('keygen'),
  li: id('li'),
  listing: id('listing'),
  malignmark: id('malignmark'),
  math: id('math'),
  mglyph: id('mglyph'),
  mi: id('mi'),
  mn: id('mn'),
  mo: id('mo'),
  ms: id('ms'),
  mtext: id('mtext'),
  nobr: id('nobr'),
  noframes: id('noframes'),
  noscript: id('noscript'),
  ol: id('ol'),
  optgroup: id('optgroup'),
  option: id('option'),
  p: id('p'),
  plaintext: id('plaintext'),
  pre: id('pre'),
  rtc: id('rtc'),
  ruby: id('ruby'),
  script: id('script'),
  select: id('select'),
  svg: id('svg'),
  table: id('table'),
  tbody: id('tbody'),
  td: id('td'),
  template: id('template'),
  textarea: id('textarea'),
  tfoot: id('tfoot'),
  th: id('th'),
  thead: id('thead'),
  title: id('title'),
  tr: id('tr'),
  ul: id('ul'),
} as const

/** Not part of an element's text, unless the element is such an element itself. */
export const IS_SILENT = mask('script style template')
/** Text written without escapes when an element is serialised. */
export const IS_RAW_TEXT = mask('iframe noembed noframes plaintext script style xmp')
/** Serialised without an end tag. */
export const IS_VOID = mask(
  'area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr',
)
export const IS_HEADING = mask('h1 h2 h3 h4 h5 h6')
export const IS_FORMATTING = mask('a b big code em font i nobr s small strike strong tt u')
/** Text and elements that do not belong in one of these are moved in front of the table. */
export const IS_TABLE_STRUCTURE = mask('table tbody tfoot thead tr')
export const HAS_IMPLIED_END = mask('dd dt li optgroup option p rb rp rt rtc')
export const HAS_IMPLIED_END_IN_TEMPLATE = mask(
  'dd dt li optgroup option p rb rp rt rtc caption colgroup tbody td tfoot th thead tr',
)
/** Start tags that end svg and math. */
export const ENDS_FOREIGN = mask(
  'b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr ol p pre ruby s ' +
    'small span strong strike sub sup table tt u ul var',
)

/** Elements of SVG and MathML that contain HTML again. */
export const IS_SVG_INTEGRATION = mask('desc foreignobject title')
export const IS_MATH_TEXT = mask('mi mn mo ms mtext')
export const isHtmlEncoding = (encoding: string | undefined): boolean =>
  encoding !== undefined && /^(?:text\/html|application\/xhtml\+xml)$/i.test(encoding)

/** What an open element means to searches in the stack of open elements. */
export const BOUNDS_SCOPE = 1
export const SPECIAL = 2

const special =
  'address applet area article aside base basefont bgsound blockquote body br button caption center col colgroup dd details dir div dl ' +
  'dt embed fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe img input ' +
  'li link listing main marquee menu meta nav noembed noframes noscript object ol p param plaintext pre script section select ' +
  'source style summary table tbody td template textarea tfoot th thead title tr track ul wbr xmp'
const bounds = (scope: string, specials: string): Uint8Array => {
  const all = new Uint8Array(KNOWN)
  for (const id of ids(scope)) all[id]! |= BOUNDS_SCOPE
  for (const id of ids(specials)) all[id]! |= SPECIAL
  return all
}
/** Of HTML elements. */
export const HTML_BOUNDS = bounds('applet caption html marquee object table td template th', special)
const MATH_BOUNDS = 'annotation-xml mi mn mo ms mtext'
const SVG_BOUNDS = 'desc foreignobject title'
/** By namespace: HTML, SVG, MathML. */
export const BOUNDS: readonly Uint8Array[] = [
  HTML_BOUNDS,
  bounds(SVG_BOUNDS, SVG_BOUNDS),
  bounds(MATH_BOUNDS, MATH_BOUNDS),
]

const SLOTS = 1024
const slots = new Int16Array(SLOTS).fill(-1)
const lengths = Uint8Array.from(NAMES, (name) => name.length)
const WIDTH = 16
const letters = new Uint8Array(KNOWN * WIDTH)
for (let id = 0; id < KNOWN; id++) {
  const name = NAMES[id]!
  for (let i = 0; i < name.length; i++) letters[id * WIDTH + i] = name.charCodeAt(i)
  let slot = slotOf(name.charCodeAt(0), name.charCodeAt(name.length - 1), name.length)
  while (slots[slot] !== -1) slot = (slot + 1) & (SLOTS - 1)
  slots[slot] = id
}

function slotOf(first: number, last: number, length: number): number {
  return ((first & 31) * 37 + (last & 31) * 11 + length * 101) & (SLOTS - 1)
}

/** The id of the known tag name at `codes[start…end)`, whatever its case, or -1. */
export function knownTagAt(codes: Uint16Array, start: number, end: number): number {
  const length = end - start
  for (let slot = slotOf(codes[start]!, codes[end - 1]!, length); ; slot = (slot + 1) & (SLOTS - 1)) {
    const id = slots[slot]!
    if (id === -1) return -1
    if (lengths[id] !== length) continue
    let i = 0
    for (; i < length; i++) {
      const c = codes[start + i]!
      if ((c >= 65 && c <= 90 ? c | 32 : c) !== letters[id * WIDTH + i]) break
    }
    if (i === length) return id
  }
}
