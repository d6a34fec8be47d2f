/** The tree of a page as lines and as HTML, ours and parse5's, for the tests that compare them. */
import assert from 'node:assert/strict'
import type { AnyNode, Element } from 'domhandler'
import { type DefaultTreeAdapterTypes, serializeOuter } from 'parse5'
import { domOf } from './dom.ts'
import { namespaceOf } from './foreign-names.ts'
import { findFirst } from './match.ts'
import { indexPage, type PageIndex, recycle } from './page-index.ts'
import { parse5Document } from './parse5-document.test-kit.ts'
import { compile } from './selector.ts'
import { outerHtmlOf } from './serialize.ts'

type Parse5Node = DefaultTreeAdapterTypes.ChildNode
type Parse5Element = DefaultTreeAdapterTypes.Element

const NAMESPACES = ['', 'svg ', 'math ']

/** What both sides say about one page. */
export interface Reading {
  /** One line per node, indented by depth. */
  readonly tree: readonly string[]
  /** `outerHTML` of the html element. */
  readonly html: string
}

/** A template's children are those of its content. */
export function parse5Children(node: DefaultTreeAdapterTypes.Node): readonly Parse5Node[] {
  if ('content' in node) return node.content.childNodes
  return 'childNodes' in node ? node.childNodes : []
}

export function theirReading(page: string): Reading {
  const document = parse5Document(page)
  const root = document.childNodes.find((node) => node.nodeName === 'html')!
  return { tree: theirLines(document.childNodes, ''), html: serializeOuter(root, { scriptingEnabled: false }) }
}

function theirLines(nodes: readonly Parse5Node[], indent: string): string[] {
  return nodes.flatMap((node) => {
    if ('tagName' in node) {
      const namespace = node.namespaceURI.endsWith('svg') ? 'svg ' : node.namespaceURI.endsWith('MathML') ? 'math ' : ''
      const line = elementLine(indent, namespace + node.tagName, theirAttributes(node))
      return [line, ...theirLines(parse5Children(node), `${indent} `)]
    }
    if ('value' in node) return [`${indent}text ${JSON.stringify(node.value)}`]
    if ('data' in node) return [`${indent}comment ${JSON.stringify(node.data)}`]
    return [`${indent}doctype ${JSON.stringify([node.name, node.publicId, node.systemId])}`]
  })
}

const theirAttributes = ({ attrs }: Parse5Element): [string, string][] =>
  attrs.map(({ prefix, name, value }) => [prefix ? `${prefix}:${name}` : name, value])

export function ourReading(page: string): Reading {
  const index = indexPage(page)
  try {
    const { cheerio, tokens } = domOf(index)
    const tree = ourLines(index, tokens, cheerio.root()[0]!.children as unknown as AnyNode[], '')
    return { tree, html: outerHtmlOf(index, findFirst(index, compile('html'), -1)) }
  } finally {
    recycle(index)
  }
}

type TokensOfElements = ReadonlyMap<unknown, number>

function ourLines(index: PageIndex, tokens: TokensOfElements, nodes: readonly AnyNode[], indent: string): string[] {
  return nodes.flatMap((node) => {
    if (node.type === 'root') return ourLines(index, tokens, node.children as AnyNode[], indent) // a template's content
    if ('children' in node) {
      const { name, attribs, children } = node as Element
      const namespace = NAMESPACES[namespaceOf(index.kind[tokens.get(node)!]!)]!
      const line = elementLine(indent, namespace + name, Object.entries(attribs))
      return [line, ...ourLines(index, tokens, children, `${indent} `)]
    }
    if (node.type === 'directive') return [`${indent}doctype ${JSON.stringify(doctypeParts(node.data))}`]
    return [`${indent}${node.type} ${JSON.stringify(node.data)}`]
  })
}

/** parse5 does not tell a missing id from an empty one, so neither do the lines. */
function doctypeParts(directive: string): string[] {
  const [, name, publicId, afterPublic, systemId] =
    /^!DOCTYPE (.*?)(?: PUBLIC "(.*?)"(?: "(.*)")?| SYSTEM "(.*)")?$/s.exec(directive)!
  return [name!, publicId ?? '', afterPublic ?? systemId ?? '']
}

/** Sorted: a JavaScript object puts names that are numbers first. The order is compared in the HTML. */
function elementLine(indent: string, name: string, attributes: readonly [string, string][]): string {
  return `${indent}${name} ${JSON.stringify([...attributes].sort(([a], [b]) => (a < b ? -1 : 1)))}`
}

/** Throws if the two trees, or the HTML they are written as, are not exactly equal. */
export function assertSameTree(page: string, message?: string): void {
  const ours = ourReading(page)
  const theirs = theirReading(page)
  // Joined first: comparing thousands of equal lines one by one takes longer than parsing them.
  if (ours.tree.join('\n') !== theirs.tree.join('\n')) assert.deepEqual(ours.tree, theirs.tree, message)
  if (ours.html !== theirs.html) assert.equal(ours.html, theirs.html, message)
}

export function isSameTree(page: string): boolean {
  try {
    assertSameTree(page)
    return true
  } catch {
    return false
  }
}

/** The smallest page that still `fails`, found by leaving out pieces, long ones first. */
export function shrink(page: string, fails: (page: string) => boolean): string {
  let smallest = page
  for (let isSmaller = true; isSmaller; ) {
    isSmaller = false
    for (let length = Math.max(1, smallest.length >> 1); length >= 1; length >>= 1) {
      for (let i = 0; i + length <= smallest.length; ) {
        const shorter = smallest.slice(0, i) + smallest.slice(i + length)
        if (fails(shorter)) {
          smallest = shorter
          isSmaller = true
        } else i++
      }
    }
  }
  return smallest
}

/** What to print about a page with a difference: where the trees part, or the HTML. */
export function describeDifference(page: string): string {
  const theirs = theirReading(page)
  let ours: Reading
  try {
    ours = ourReading(page)
  } catch (error) {
    return `${JSON.stringify(page)}\nours threw ${error instanceof Error ? error.stack : error}`
  }
  const [a, b] =
    ours.tree.join('\n') === theirs.tree.join('\n') ? [[ours.html], [theirs.html]] : [ours.tree, theirs.tree]
  const at = Math.max(0, a.findIndex((line, i) => line !== b[i]) - 3)
  const part = (lines: readonly string[]) =>
    lines
      .slice(at, at + 8)
      .join('\n         ')
      .slice(0, 2000)
  return `${JSON.stringify(page.slice(0, 2000))}\n  ours   ${part(a)}\n  parse5 ${part(b)}`
}
