/**
 * The tree of the page index against parse5's, which must be equal node by node, on documents made from a seed and on every page
 * of test/pages with characters changed. Prints what differs, as small as it gets, and then exits with 1.
 *
 *   node bench/tree-oracle.ts [--documents 100000] [--seed N] [--mutations 20]
 */
import { readdirSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { generatedHtml, mutatedHtml, randomOf } from '../src/extract/generated-html.test-kit.ts'
import { describeDifference, isSameTree, shrink } from '../src/extract/tree-oracle.test-kit.ts'

const { values } = parseArgs({
  options: {
    documents: { type: 'string', default: '100000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000_000) },
    /** Of each page. */
    mutations: { type: 'string', default: '20' },
  },
})
const seed = Number(values.seed)
const PAGES = new URL('../test/pages/', import.meta.url)
/** Of a long page, its beginning is changed: a tree of a megabyte takes parse5 longer than a hundred small ones. */
const MUTATED_CHARS_MAX = 60_000
const SHOWN_MAX = 5

let differences = 0
function check(name: string, html: string): void {
  if (isSameTree(html)) return
  differences++
  if (differences > SHOWN_MAX) return
  console.log(`${name} differs: ${describeDifference(shrink(html, (page) => !isSameTree(page)))}\n`)
}

console.log(`seed ${seed}`)
const documents = Number(values.documents)
for (let i = 0; i < documents; i++) check(`document ${i}`, generatedHtml(randomOf(seed, i)))
console.log(`${documents} generated documents, ${differences} with a different tree`)

let pages = 0
const before = differences
for (const [number, file] of readdirSync(PAGES)
  .filter((name) => name.endsWith('.html'))
  .entries()) {
  const html = readFileSync(new URL(file, PAGES), 'utf8')
  check(file, html)
  const start = html.slice(0, MUTATED_CHARS_MAX)
  for (let i = 0; i < Number(values.mutations); i++) {
    check(`${file}, mutation ${i}`, mutatedHtml(start, randomOf(seed + number, i)))
    pages++
  }
}
console.log(`${pages} changed pages of test/pages, ${differences - before} with a different tree`)
process.exitCode = differences === 0 ? 0 : 1
