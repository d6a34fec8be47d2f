/** Every code block of the docs is run, or checked as far as can be here; a block nobody knows how to check fails. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it, test } from 'node:test'
import { parse as parseYaml } from 'yaml'
import { type Block, blocksOf, missingLine } from '../test/docs/blocks.ts'
import { peerProblems } from '../test/docs/check-peers.ts'
import { typeProblems } from '../test/docs/check-types.ts'
import { linesOf, stepsOf } from '../test/docs/commands.ts'
import { type PageReport, runPage } from '../test/docs/run-page.ts'
import { ROOT } from '../test/docs/shell.ts'
import type {} from '../test/services/chromium.ts'
import type {} from '../test/services/postgres.ts'
import type {} from '../test/services/prometheus.ts'
import type {} from '../test/services/rabbitmq.ts'
import type {} from '../test/services/redis.ts'
import type {} from '../test/services/socks.ts'
import type {} from '../test/services/tinyproxy.ts'
import { type BooksSite, startBooksSite } from '../test/site/books.ts'

const KINDS = ['sh', 'console', 'text', 'ts', 'diff', 'json', 'yaml']
const PAGES = globSync(['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'docs/**/*.md', 'templates/**/*.md'], {
  cwd: ROOT,
})
  .filter((page) => !page.startsWith('docs/reference/'))
  .sort()
const ALL = PAGES.map((page) => ({ page, blocks: blocksOf(page, readFileSync(join(ROOT, page), 'utf8')) }))
const BLOCKS = ALL.flatMap(({ blocks }) => blocks)
const PAGES_AT_ONCE = 3

/** How many commands of a page are only checked, because they cannot run here. More of them need a good reason. */
const CHECKED_ONLY: Readonly<Record<string, number>> = {
  'README.md': 7, // make, git clone, npm, npx
  'docs/how-to/autoscale-with-keda.md': 4, // kubectl
  'docs/how-to/deploy-to-kubernetes.md': 7, // kubectl
  'docs/how-to/deploy-to-swarm.md': 9, // docker
  'docs/how-to/deploy-with-compose.md': 15, // docker
  'docs/how-to/handle-blocks-and-captchas.md': 1, // npm
  'docs/how-to/inspect-rabbitmq-and-redis.md': 1, // rabbitmqctl
  'docs/how-to/run-a-fleet.md': 1, // docker
  'docs/how-to/start-a-project.md': 3, // npm, npx
  'docs/how-to/trace-a-run.md': 1, // npm
  'docs/how-to/try-the-stack-locally.md': 3, // make stack
  'docs/tutorial.md': 3, // make, git clone, the site that is there already
}
const isRun = ({ kind, context }: Block) =>
  kind === 'sh' || kind === 'console' || (kind === 'ts' && context === undefined)

test('every block is of a kind that is run or checked', () => {
  const unknown = BLOCKS.filter(({ kind, isPeer }) => !isPeer && !KINDS.includes(kind))
  assert.deepEqual(
    unknown.map(({ page, line, kind }) => `${page}:${line}: ${kind || 'no kind'}`),
    [],
  )
})

test('every block of TypeScript fits the sources, and one that does not is found', () => {
  const blocks = BLOCKS.filter(({ kind }) => kind === 'ts')
  assert.ok(blocks.length > 5)
  const text = "import { nobody } from 'sluice'\nnobody()\n"
  const wrong = { ...blocks[0]!, page: 'x.md', line: 7, context: undefined, text }
  const [problems, found] = [typeProblems([...blocks, wrong]), /^x\.md:7\(.*nobody/]
  assert.deepEqual(
    problems.filter((problem) => !found.test(problem)),
    [],
  )
  assert.ok(problems.some((problem) => found.test(problem)))
})

test('every block of JSON and YAML can be read', () => {
  const read: Record<string, (text: string) => unknown> = { json: JSON.parse, yaml: parseYaml }
  for (const { kind, text, page, line } of BLOCKS) {
    assert.doesNotThrow(() => read[kind]?.(text), `${page}:${line}`)
  }
})

test('every block of another product can be read by its language', () => {
  assert.deepEqual(peerProblems(BLOCKS.filter(({ isPeer }) => isPeer)), [])
})

describe('every command works in', { concurrency: PAGES_AT_ONCE }, () => {
  const reports: PageReport[] = []
  let site: BooksSite
  before(async () => {
    site = await startBooksSite({ products: 100, hasSitemap: true })
  })
  after(async () => {
    await site[Symbol.asyncDispose]()
    const count = reports.reduce((sum, { run }) => sum + run, 0)
    const parts = BLOCKS.filter(({ kind, context }) => kind === 'ts' && context !== undefined).length
    const data = BLOCKS.filter(({ kind, word }) => (kind === 'json' || kind === 'yaml') && word === '').length
    console.log(`commands and programs of the docs: ${count} run; commands only checked: ${whyText(reports)}`)
    console.log(`parts of programs, checked by the compiler: ${parts}; data, only parsed: ${data}`)
  })
  // Those with most to do first: a long one at the end would run alone.
  const workOf = ({ blocks }: { blocks: Block[] }) =>
    blocks.reduce((sum, { text }) => sum + text.split('sluice ').length, 0)
  const pages = ALL.filter((one) => one.blocks.some(isRun)).sort((a, b) => workOf(b) - workOf(a))
  for (const { page, blocks } of pages) {
    it(page, async () => {
      const report = await runPage(page, blocks, site.url)
      reports.push(report)
      assert.equal(report.problems.length, 0, report.problems.join('\n\n'))
      const checkedOnly = [...report.checkedOnly.values()].reduce((sum, count) => sum + count, 0)
      assert.equal(checkedOnly, CHECKED_ONLY[page] ?? 0, `only checked: ${whyText([report])}`)
    })
  }
})

function whyText(reports: readonly PageReport[]): string {
  const sums = new Map<string, number>()
  for (const [why, count] of reports.flatMap(({ checkedOnly }) => [...checkedOnly]))
    sums.set(why, (sums.get(why) ?? 0) + count)
  return [...sums].map(([why, count]) => `${count} (${why})`).join(', ') || 'none'
}

test('output that differs from the page is found, other run ids and times are not', () => {
  assert.equal(missingLine('a\nrun 20261116_010203_ab12 is 5\n', 'run 20261115_113501_x7k2 is 5\n'), undefined)
  assert.equal(missingLine('run is 6\n', 'run is 5\n'), 'run is 5')
  assert.equal(missingLine('b\na\n', 'a\nb\n'), 'b')
  assert.deepEqual(stepsOf('$ a \\\n  b\nshown\n$ c\n'), [
    { command: 'a \\\n  b', output: 'shown\n' },
    { command: 'c', output: '' },
  ])
  assert.deepEqual(linesOf("# why\na \\\n  b\nc <<E\nd\nE\nfor x in 'y'; do\n e\ndone\nf 'g\nh'\n"), [
    'a \\\n  b',
    'c <<E\nd\nE',
    "for x in 'y'; do\n e\ndone",
    "f 'g\nh'",
  ])
})

test('each command of a block counts, and what was to run on and died is found', async () => {
  const page = [
    '```sh\nmkfifo pipe\nfalse\necho on\n```',
    '```text\nof\n```',
    '```console\n$ echo a\nb\n$ npm start\n$ make nonsense\n```',
    "```sh\nsh -c 'echo $$ > pid; echo ready; read line < pipe; exit 7' &",
    'echo go > pipe\nwhile kill -0 $(cat pid) 2> /dev/null; do sleep 0.05; done\n```',
    '```sh exit=3\ntrue\nexit 3\n```',
  ]
  const report = await runPage('x.md', blocksOf('x.md', page.join('\n')), 'http://127.0.0.1:9/')
  const firstLines = report.problems.map((problem) => problem.split('\n')[0])
  assert.deepEqual(firstLines, [
    'x.md:1: ended with 1: false',
    'x.md:6: not shown, or not in this order: of',
    'x.md:9: not shown, or not in this order: b',
    'x.md:9: no target of the Makefile: nonsense',
    "ended early with 7: sh -c 'echo $$ > pid; echo ready; read line < pipe; exit 7' &",
  ])
  assert.equal(report.checkedOnly.size, 2)
})
