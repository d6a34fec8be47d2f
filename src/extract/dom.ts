/** Cheerio on a page that is already indexed: the same tree by construction, so both tiers always agree. */
import { createRequire } from 'node:module'
import type { CheerioAPI } from 'cheerio'
import type { DomHandler, Element } from 'domhandler'
import { ScrapeError } from '../core/errors.ts'
import { attributesOf } from './attributes.ts'
import { parseDoctype } from './doctype.ts'
import { elementName, speltAttributes } from './foreign-names.ts'
import type { PageIndex } from './page-index.ts'
import { invalid } from './selector.ts'
import { commentText, LateComments } from './serialize.ts'
import { TAG } from './tags.ts'
import { addTextAt, isVoid } from './text.ts'
import { COMMENT, DOCTYPE, ELEMENT } from './tree-builder.ts'

export interface Dom {
  readonly cheerio: CheerioAPI
  readonly elements: ReadonlyMap<number, Element>
  readonly tokens: ReadonlyMap<unknown, number>
}

const require = createRequire(import.meta.url)

/** Loaded with the first page that needs it: most scrapers never do, and it takes 50 ms and 15 MB. */
const slim = () => require('cheerio/slim') as typeof import('cheerio/slim')
const domhandler = () => require('domhandler') as typeof import('domhandler')

export function domOf(index: PageIndex): Dom {
  const elements = new Map<number, Element>()
  const tokens = new Map<unknown, number>()
  const open: number[] = []
  const handler = new (domhandler().DomHandler)(null, null, (element) => {
    const token = open.pop()!
    elements.set(token, element)
    tokens.set(element, token)
    if (index.tag[token] === TAG.template && index.kind[token] === ELEMENT) wrapContent(element)
  })
  const { count, kind, close, parent } = index
  const names = [...index.names.keys()]
  const text = { add: (piece: string) => piece !== '' && handler.ontext(piece) }
  const late = new LateComments()
  const closeTop = () => {
    for (const token of late.of(open.at(-1)!)) addComment(handler, index, token)
    handler.onclosetag()
  }

  for (let token = 0; token < count; token++) {
    while (open.length > 0 && close[open.at(-1)!]! <= token) closeTop()
    const what = kind[token]!
    if (what >= ELEMENT) {
      handler.onopentag(elementName(index, names, token), attribs(speltAttributes(what, attributesOf(index, token))))
      open.push(token)
      if (isVoid(what)) handler.onclosetag()
    } else if (what === DOCTYPE) addDoctype(handler, index, token)
    else if (what === COMMENT) {
      if (parent[token] === (open.at(-1) ?? -1)) addComment(handler, index, token)
      else late.add(parent[token]!, token)
    }
    if (open.length > 0) addTextAt(index, token, text)
  }
  while (open.length > 0) closeTop()
  for (const token of late.of(-1)) addComment(handler, index, token)
  handler.onend()
  return { cheerio: slim().load(handler.root as never), elements, tokens }
}

/** The content of a template is a document of its own, so that selectors do not find it from outside. */
function wrapContent(template: Element): void {
  const content = new (domhandler().Document)(template.children)
  for (const child of template.children) child.parent = content
  template.children = [content]
  content.parent = template as never
}

/** Without a prototype, so that `__proto__` is a name like any other. */
function attribs(attributes: ReadonlyMap<string, string>): Record<string, string> {
  const record: Record<string, string> = Object.create(null)
  for (const [name, value] of attributes) record[name] = value
  return record
}

function addComment(handler: DomHandler, index: PageIndex, token: number): void {
  handler.oncomment(commentText(index, token))
  handler.oncommentend()
}

function addDoctype(handler: DomHandler, { html, start, end }: PageIndex, token: number): void {
  const { name, publicId, systemId } = parseDoctype(html.slice(start[token], end[token]))
  const ids =
    publicId !== undefined
      ? ` PUBLIC "${publicId}"${systemId === undefined ? '' : ` "${systemId}"`}`
      : systemId === undefined
        ? ''
        : ` SYSTEM "${systemId}"`
  handler.onprocessinginstruction('!doctype', `!DOCTYPE ${name}${ids}`)
}

/** What cheerio finds inside `scope` (-1: the page), as tokens in page order. */
export function findWithCheerio(dom: Dom, css: string, scope: number): number[] {
  const { cheerio, elements, tokens } = dom
  const place = scope === -1 ? cheerio.root() : cheerio(elements.get(scope) as never)
  try {
    return place
      .find(css)
      .toArray()
      .map((element) => tokens.get(element))
      .filter((token) => token !== undefined) // a handler may have added elements of its own
  } catch (error) {
    // css-select recurses along the tree for some pseudo-classes.
    if (error instanceof RangeError)
      throw new ScrapeError('E_HTML_LIMIT', `tags nested too deep for ${JSON.stringify(css)}`)
    throw invalid(css, error)
  }
}
