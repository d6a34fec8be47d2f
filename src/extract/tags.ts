/** Tag names as small numbers, and htmlparser2's rules for them: void, raw text, implied end tags. */

const NAMES = (
  'a abbr acronym address annotation-xml applet area article aside audio b base basefont bdi bdo big blink blockquote body br ' +
  'button canvas caption center cite circle code col colgroup command data datalist dd defs del desc details dfn dialog dir ' +
  'div dl dt em embed fieldset figcaption figure font footer foreignobject form frame frameset g h1 h2 h3 h4 h5 h6 head header ' +
  'hgroup hr html i iframe image img input ins isindex kbd keygen label legend li line link main map mark marquee math menu ' +
  'meta meter mi mn mo ms mtext nav nobr noembed noframes noscript object ol optgroup option output p param path picture ' +
  'plaintext polygon pre progress q rect rp rt ruby s samp script search section select slot small source span strike strong ' +
  'style sub summary sup svg symbol table tbody td template text textarea tfoot th thead time title tr track tt u ul use var ' +
  'video wbr xmp'
).split(' ')

/** IDs below this are the same for all pages; a page numbers its own unknown names from here on. */
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

export const IS_VOID = mask(
  'area base basefont br col command embed frame hr img input isindex keygen link meta param source track wbr',
)
/** Their content is text up to the element's own end tag. */
export const IS_RAW = mask('iframe noembed noframes plaintext script style textarea title xmp')
/** Raw text, but with entities. */
export const IS_RAW_WITH_ENTITIES = mask('textarea title')
/** Not part of a place's text, unless the place is such an element itself. */
export const IS_SILENT = mask('script style')
/** Elements inside svg and math where HTML rules apply again. */
export const IS_INTEGRATION = mask('mi mo mn ms mtext annotation-xml desc title')

export const TAG = {
  base: idByName.get('base')!,
  br: idByName.get('br')!,
  foreignobject: idByName.get('foreignobject')!,
  form: idByName.get('form')!,
  image: idByName.get('image')!,
  img: idByName.get('img')!,
  math: idByName.get('math')!,
  p: idByName.get('p')!,
  plaintext: idByName.get('plaintext')!,
  svg: idByName.get('svg')!,
} as const

const formTags = 'input option optgroup select button datalist textarea'
const headings = 'h1 h2 h3 h4 h5 h6'

/** `IMPLIES_END[opened * KNOWN + open]`: opening the first ends the second if that is the innermost open element. */
export const IMPLIES_END = new Uint8Array(KNOWN * KNOWN)
function impliesEnd(opened: string, ended: string): void {
  for (const a of ids(opened)) for (const b of ids(ended)) IMPLIES_END[a * KNOWN + b] = 1
}
impliesEnd('tr', 'tr th td')
impliesEnd('th', 'th')
impliesEnd('td', 'thead th td')
impliesEnd('body', 'head link script')
impliesEnd('a', 'a')
impliesEnd('li', 'li')
impliesEnd(headings, `${headings} p`)
impliesEnd('select input output button datalist textarea', formTags)
impliesEnd('option', 'option')
impliesEnd('optgroup', 'optgroup option')
impliesEnd('dd dt', 'dd dt')
impliesEnd('rt rp', 'rt rp')
impliesEnd('tbody tfoot', 'thead tbody')
impliesEnd(
  'p address article aside blockquote details div dl fieldset figcaption figure footer form header hr main nav ol pre section table ul',
  'p',
)

/** Whether a tag can end another at all: most cannot, and need no check of the stack. */
export const IMPLIES_ANY_END = new Uint8Array(KNOWN)
for (let id = 0; id < KNOWN; id++)
  IMPLIES_ANY_END[id] = IMPLIES_END.subarray(id * KNOWN, id * KNOWN + KNOWN).includes(1) ? 1 : 0

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

/** The ID of the known tag name at `codes[start…end)`, in any case, or -1. */
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
