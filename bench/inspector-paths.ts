/**
 * Paths copied from a browser's inspector, asked of `$`: each must find exactly the element it was copied from. For each page,
 * random elements of parse5's tree are written as the inspector writes them (`#main > div:nth-child(2) > table > tbody > tr`);
 * what `$` finds must have the same attributes and the same text. Prints the share per folder; exits with 1 below 99.9 %.
 *
 *   node bench/inspector-paths.ts [--elements 50] [--pages 500] [--seed N] [--json] [FOLDER…]
 */
import { globSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import encodingOf from 'html-encoding-sniffer'
import type { DefaultTreeAdapterTypes } from 'parse5'
import { type Random, randomOf } from '../src/extract/generated-html.test-kit.ts'
import { release, select } from '../src/extract/html.ts'
import { parse5Document } from '../src/extract/parse5-document.test-kit.ts'
import { isSameTree, parse5Children } from '../src/extract/tree-oracle.test-kit.ts'

type Element = DefaultTreeAdapterTypes.Element
type Node = DefaultTreeAdapterTypes.Node

const TEST_PAGES = fileURLToPath(new URL('../test/pages', import.meta.url))
const TARGET = 0.999
const SHOWN_MAX = 3
/** As `text()` leaves them out. */
const SILENT = new Set(['script', 'style', 'template'])

const { values, positionals } = parseArgs({
  options: {
    /** Per page. */
    elements: { type: 'string', default: '50' },
    /** Per folder; of more, a random choice. */
    pages: { type: 'string', default: '500' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000_000) },
    json: { type: 'boolean', default: false },
  },
  allowPositionals: true,
})
const seed = Number(values.seed)

const isElement = (node: Node): node is Element => 'tagName' in node
const attributeOf = (element: Element, name: string) => element.attrs.find((one) => one.name === name)?.value
const fold = (text: string) => text.replace(/\s+/g, ' ').trim()

/** What a template contains is not in the document: no path leads there. */
function elementsOf(node: Node): Element[] {
  const children = 'childNodes' in node ? node.childNodes.filter(isElement) : []
  return children.flatMap((child) => [child, ...elementsOf(child)])
}

/** Of a template itself, the text of its content. */
function textOf(node: Node): string {
  if ('value' in node) return node.value
  return parse5Children(node)
    .filter((child) => !(isElement(child) && SILENT.has(child.tagName)))
    .map(textOf)
    .join('')
}

/** `CSS.escape`, which Node does not have. */
function escaped(name: string): string {
  return [...name]
    .map((c, i) => {
      if (c === '\0') return '\uFFFD'
      const isLeadingDigit = /\d/.test(c) && (i === 0 || (i === 1 && name[0] === '-'))
      if (isLeadingDigit || c < ' ' || c === '\x7f') return `\\${c.codePointAt(0)!.toString(16)} `
      return (c >= '\x80' || /[\w-]/.test(c)) && name !== '-' ? c : `\\${c}`
    })
    .join('')
}

/** From the nearest element with an id that no other has, or else from html. */
function pathOf(element: Element, isUnique: (id: string) => boolean): string {
  const id = attributeOf(element, 'id')
  if (id !== undefined && isUnique(id)) return `#${escaped(id)}`
  const parent = element.parentNode
  const name = escaped(element.tagName)
  if (parent === null || !isElement(parent)) return name
  const siblings = parent.childNodes.filter(isElement)
  const isOnly = siblings.every((one) => one === element || one.tagName !== element.tagName)
  const step = isOnly ? name : `${name}:nth-child(${siblings.indexOf(element) + 1})`
  return `${pathOf(parent, isUnique)} > ${step}`
}

/** What `$` finds wrong; undefined if it finds the element. */
function problemOf($: ReturnType<typeof select>, path: string, element: Element): string | undefined {
  try {
    const found = $.all(path)
    if (found.length !== 1) return `finds ${found.length} elements`
    const other = element.attrs.find((one) => !one.prefix && found[0]!.ownAttr(one.name) !== one.value)
    if (other !== undefined) return `finds an element with another ${other.name}`
    return $.text(path) === fold(textOf(element)) ? undefined : 'finds another text'
  } catch (error) {
    return String(error)
  }
}

interface Result {
  readonly folder: string
  readonly pages: number
  /** Pages on which the whole tree is parse5's. */
  readonly sameTree: number
  readonly elements: number
  readonly found: number
  readonly problems: readonly string[]
}

function choose<T>(from: readonly T[], count: number, random: Random): T[] {
  if (from.length <= count) return [...from]
  return Array.from({ length: count }, () => from[random(from.length)]!)
}

function pagesIn(folder: string): string[] {
  const found = globSync('**/*.{html,htm}', { cwd: folder, withFileTypes: true }).filter((entry) => entry.isFile())
  return found.map((entry) => relative(folder, join(entry.parentPath, entry.name))).sort()
}

function measure(folder: string): Result {
  const problems: string[] = []
  let elements = 0
  let sameTree = 0
  const files = choose(pagesIn(folder), Number(values.pages), randomOf(seed, 0))
  for (const [number, file] of files.entries()) {
    const bytes = readFileSync(join(folder, file))
    const html = new TextDecoder(encodingOf(bytes, { defaultEncoding: 'utf-8' }) ?? 'utf-8').decode(bytes)
    if (isSameTree(html)) sameTree++
    const all = elementsOf(parse5Document(html))
    const ids = Map.groupBy(all, (element) => attributeOf(element, 'id') ?? '')
    const isUnique = (id: string) => id !== '' && ids.get(id)?.length === 1
    const $ = select(html, 'http://h/')
    for (const element of choose(all, Number(values.elements), randomOf(seed, number + 1))) {
      elements++
      const path = pathOf(element, isUnique)
      const problem = problemOf($, path, element)
      if (problem !== undefined) problems.push(`${file}: ${path} ${problem}`)
    }
    release($)
  }
  return { folder, pages: files.length, sameTree, elements, found: elements - problems.length, problems }
}

const results = [TEST_PAGES, ...positionals].map(measure)
if (values.json) console.log(JSON.stringify({ seed, results }, null, 2))
else {
  console.log(`seed ${seed}`)
  for (const { folder, pages, sameTree, elements, found, problems } of results) {
    const share = `${((100 * found) / elements).toFixed(2)} %`
    console.log(`${share.padStart(8)}  ${found} of ${elements} paths, ${sameTree} of ${pages} whole trees  ${folder}`)
    for (const problem of problems.slice(0, SHOWN_MAX)) console.log(`          ${problem}`)
  }
}
process.exitCode = results.every(({ elements, found }) => found >= TARGET * elements) ? 0 : 1
