/** CPU time of the block check per page, on real pages: `node bench/block-check.ts [--json] [--ms 300]`. Its limit is 1 ms. */
import { parseArgs } from 'node:util'
import { checkForBlock } from '../src/fetch/block/check.ts'

const { values } = parseArgs({ options: { json: { type: 'boolean' }, ms: { type: 'string', default: '300' } } })
const PAGE_BYTES = 480_000
const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  server: 'cloudflare',
  'cf-ray': 'x',
  'set-cookie': ['__cf_bm=x'],
}

const article = '<article><h2>Engineer</h2><p>We build things that last, and we walk by the river.</p></article>'
const filled = (piece: string, head = '') =>
  Buffer.from(
    `<!doctype html><html><head><title>Jobs</title>${head}</head><body>${piece.repeat(PAGE_BYTES / piece.length)}`,
  )

const cases: [name: string, status: number, body: Buffer][] = [
  ['480 kB of text', 200, filled(article)],
  ['480 kB, the first 64 kB of it script', 200, filled(article, `<script>${'var a = 1;'.repeat(7_000)}</script>`)],
  ['480 kB of script', 200, Buffer.from(`<title>Jobs</title><script>${'var a = 1;'.repeat(PAGE_BYTES / 10)}</script>`)],
  [
    '60 kB of script and no text',
    200,
    Buffer.from(`<title>Jobs</title><script>${'var a = 1;'.repeat(6_000)}</script>`),
  ],
  ['480 kB refused', 403, filled(article)],
  ['480 kB of tags', 403, filled('<b></b>')],
]

const results = cases.map(([name, status, body]) => {
  const once = () => checkForBlock({ url: 'https://a.test/jobs/1', status, headers: HEADERS, body })
  for (let i = 0; i < 200; i++) once()
  const untilMs = performance.now() + Number(values.ms)
  const before = process.cpuUsage()
  let rounds = 0
  for (; performance.now() < untilMs; rounds++) once()
  return { name, status, microseconds: Math.round(process.cpuUsage(before).user / rounds) }
})

if (values.json) console.log(JSON.stringify(results))
else
  for (const { name, status, microseconds } of results)
    console.log(`${String(microseconds).padStart(6)} µs  ${status}  ${name}`)
