/** Elements as HTML again: the standard's serialisation, which is what a browser's `outerHTML` gives. */
import { attributesOf } from './attributes.ts'
import { plainText } from './entities.ts'
import { elementName, namespaceOf, speltAttributes } from './foreign-names.ts'
import type { PageIndex } from './page-index.ts'
import { IS_RAW_TEXT, IS_VOID, KNOWN } from './tags.ts'
import { addTextAt, isVoid } from './text.ts'
import { TextBuilder } from './text-builder.ts'
import { COMMENT, ELEMENT } from './tree-builder.ts'

export function outerHtmlOf(index: PageIndex, token: number): string {
  return serialize(index, token, token, index.close[token]!)
}

export function innerHtmlOf(index: PageIndex, token: number): string {
  return isVoid(index.kind[token]!) ? '' : serialize(index, token, token + 1, index.close[token]!)
}

/** The tokens `from…to`, of which `element` is or contains the first. */
function serialize(index: PageIndex, element: number, from: number, to: number): string {
  const { kind, close, parent, tag } = index
  const names = [...index.names.keys()]
  const out = new TextBuilder()
  const open: number[] = []
  const isRaw = (token: number | undefined) =>
    token !== undefined && namespaceOf(kind[token]!) === 0 && tag[token]! < KNOWN && IS_RAW_TEXT[tag[token]!] === 1
  const text = {
    add: (piece: string) => out.add(isRaw(open.at(-1) ?? element) ? piece : escapeText(piece)),
  }
  const late = new LateComments()
  const closeTop = () => {
    const token = open.pop()!
    for (const comment of late.of(token)) out.add(commentHtml(index, comment))
    const id = tag[token]!
    if (id >= KNOWN || IS_VOID[id] === 0 || namespaceOf(kind[token]!) !== 0)
      out.add(`</${elementName(index, names, token)}>`)
  }
  if (from > element) addTextAt(index, element, text)
  for (let token = from; token < to; token++) {
    while (open.length > 0 && close[open.at(-1)!]! <= token) closeTop()
    const what = kind[token]!
    if (what >= ELEMENT) {
      out.add(
        `<${elementName(index, names, token)}${attributesHtml(speltAttributes(what, attributesOf(index, token)))}>`,
      )
      open.push(token)
      if (isVoid(what)) closeTop()
    } else if (what === COMMENT) {
      if (parent[token] === (open.at(-1) ?? (from > element ? element : -1))) out.add(commentHtml(index, token))
      else late.add(parent[token]!, token)
    }
    if (open.length > 0 || from > element) addTextAt(index, token, text)
  }
  while (open.length > 0) closeTop()
  if (from > element) for (const comment of late.of(element)) out.add(commentHtml(index, comment))
  return out.text()
}

/** Comments after `</body>`: the last children of `html` or the document, although the content of `body` may go on after them. */
export class LateComments {
  readonly #byParent = new Map<number, number[]>()

  add(parent: number, token: number): void {
    const tokens = this.#byParent.get(parent)
    if (tokens === undefined) this.#byParent.set(parent, [token])
    else tokens.push(token)
  }

  of(parent: number): readonly number[] {
    return this.#byParent.get(parent) ?? []
  }
}

const commentHtml = (index: PageIndex, token: number): string => `<!--${commentText(index, token)}-->`

/** Of a comment, true or bogus. */
export function commentText({ html, start, end }: PageIndex, token: number): string {
  const source = html.slice(start[token], end[token])
  if (source.startsWith('<!--')) return plainText(trueComment(source))
  const isClosed = source.endsWith('>')
  return plainText(source.slice(source[1] === '?' ? 1 : 2, isClosed ? -1 : undefined))
}

function trueComment(source: string): string {
  if (source === '<!-->' || source === '<!--->') return ''
  const closed = /^<!--([\s\S]*?)--!?>$/.exec(source)
  if (closed !== null) return closed[1]!
  return source.slice(4).replace(/--?!?$/, '') // cut by the end of the page
}

function attributesHtml(attributes: ReadonlyMap<string, string>): string {
  let html = ''
  for (const [name, value] of attributes) html += ` ${name}="${escapeAttribute(value)}"`
  return html
}

const escapeText = (text: string): string =>
  /[&\u00a0<>]/.test(text)
    ? text.replaceAll('&', '&amp;').replaceAll('\u00a0', '&nbsp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
    : text

const escapeAttribute = (value: string): string =>
  /[&\u00a0"<>]/.test(value)
    ? value
        .replaceAll('&', '&amp;')
        .replaceAll('\u00a0', '&nbsp;')
        .replaceAll('"', '&quot;')
        .replaceAll('<', '&lt;')
        .replaceAll('>', '&gt;')
    : value
