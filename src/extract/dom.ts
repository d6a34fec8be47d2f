/** Cheerio on a page that is already indexed: both tiers share the same tree, so they always agree. */
import { createRequire } from 'node:module'
import type { CheerioAPI } from 'cheerio'
import type { DomHandler, Element } from 'domhandler'
import { ScrapeError } from '../core/errors.ts'
import { attributesOf } from './attributes.ts'
import { decodeEntities } from './entities.ts'
import { CDATA, ELEMENT, ELEMENT_RAW, ELEMENT_VOID, OTHER, type PageIndex } from './page-index.ts'
import { invalid } from './selector.ts'
import { KNOWN, knownTagName } from './tags.ts'

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
  })
  const { html, count, start, end, kind, close } = index
  const customNames = [...index.names.keys()]

  for (let token = -1; token < count; token++) {
    while (open.length > 0 && close[open.at(-1)!] === token) handler.onclosetag()
    const what = token === -1 ? OTHER : kind[token]!
    if (what >= ELEMENT) {
      const tag = index.tag[token]!
      handler.onopentag(tag < KNOWN ? knownTagName(tag) : customNames[tag - KNOWN]!, attributesOf(index, token))
      open.push(token)
      if (what === ELEMENT_VOID) handler.onclosetag()
    } else if (what === CDATA) handler.ontext(html.slice(start[token]! + 9, end[token]! - 3))
    else if (token !== -1) addOther(handler, html.slice(start[token], end[token]))
    const text = html.slice(token === -1 ? 0 : end[token]!, start[token + 1]!)
    if (text !== '') {
      handler.ontext(what !== ELEMENT_RAW && text.includes('&') ? decodeEntities(text, 'text') : text)
    }
  }
  while (open.length > 0) handler.onclosetag()
  handler.onend()
  return { cheerio: slim().load(handler.root as never), elements, tokens }
}

/** Comments, real and bogus, and the doctype; end tags leave nothing. */
function addOther(handler: DomHandler, source: string): void {
  if (/^<!doctype/i.test(source)) {
    if (source.endsWith('>')) handler.onprocessinginstruction('!doctype', source.slice(1, -1))
  } else if (!/^<(?:\/?[a-z]|\/>)/i.test(source)) {
    const isTrue = source.startsWith('<!--')
    handler.oncomment(isTrue ? source.slice(4).replace(/--!?>$/, '') : source.slice(source[1] === '?' ? 1 : 2, -1))
    handler.oncommentend()
  }
}

/** Cheerio's matches inside `scope` (-1: the page), as tokens in page order. */
export function findWithCheerio(dom: Dom, css: string, scope: number): number[] {
  const { cheerio, elements, tokens } = dom
  const place = scope === -1 ? cheerio.root() : cheerio(elements.get(scope) as never)
  try {
    return place
      .find(css)
      .toArray()
      .map((element) => tokens.get(element))
      .filter((token) => token !== undefined) // a handler may have added its own elements
  } catch (error) {
    // css-select recurses along the tree for some pseudo-classes.
    if (error instanceof RangeError)
      throw new ScrapeError('E_HTML_LIMIT', `tags nested too deep for ${JSON.stringify(css)}`)
    throw invalid(css, error)
  }
}
