import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NO_FILES, type RunRecord } from '../core/run.ts'
import { nextCommands, summaryText } from './summary.ts'
import { coloured, displayWidth } from './terminal.ts'

const finished: RunRecord = {
  id: '20261115_113501_x7k2',
  scraper: 'books',
  state: 'finished',
  reason: null,
  args: {},
  source: 'books',
  exitCode: 0,
  startedAt: '2026-11-15T11:35:01.000Z',
  finishedAt: '2026-11-15T11:35:25.310Z',
  durationMs: 24_310,
  frontier: 'sqlite:',
  pages: { ok: 1050, failed: 0, retried: 12, postponed: 4, remaining: 0, dead: 0 },
  items: { new: 1000, same: 0, changed: 0, invalid: 0 },
  files: NO_FILES,
  fieldFill: { title: 1, price: 1, rating: 1, availability: 0.5, description: 0.998, upc: 0.12, url: 1 },
  bytes: 54_120_330,
  latencyMs: { p50: 88.2, p95: 182 },
  rssBytesMax: 118_000_000,
  cpuMs: 12_300,
  errors: [],
  outputs: [
    { sink: 'jsonl', target: 'runs/books/20261115_113501_x7k2/items.jsonl', rows: 1000, bytes: 412_233 },
    { sink: 'csv', target: 'runs/books/20261115_113501_x7k2/items.csv', rows: 1000, bytes: 90_201 },
  ],
  notFetched: {},
  warnings: [],
}

const stopped: RunRecord = {
  ...finished,
  state: 'stopped',
  exitCode: 4,
  reason: 'stopped by Ctrl-C',
  pages: { ok: 812, failed: 15, retried: 31, postponed: 0, remaining: 222, dead: 15 },
  items: { new: 790, same: 3, changed: 1, invalid: 7 },
  fieldFill: { title: 1 },
  errors: [
    {
      code: 'E_NOT_FOUND',
      class: 'not-found',
      count: 12,
      example: 'https://shop.example/catalogue/a-light_1000/index.html',
    },
    { code: 'E_ITEM_INVALID', class: 'item', count: 7, example: 'https://shop.example/p/7' },
    { code: 'E_SERVER', class: 'server-error', count: 3, example: 'https://shop.example/p/1' },
  ],
  outputs: [],
  warnings: ['robots.txt of shop.example asks for a crawl-delay of 20 s; 10 s is the longest obeyed'],
}

test('summarises a successful run', () => {
  assert.equal(
    summaryText(finished),
    `✔ books finished in 24.3 s                                                  run 20261115_113501_x7k2

  pages   1,050 ok · 0 failed · 12 retried · 4 postponed
  items   1,000 new · 0 changed · 0 invalid
  speed   43 pages/s · 41 items/s · 2.2 MB/s · p50 88 ms · p95 182 ms
  used    CPU 12.3 s (51 %) · RSS max 118 MB · 54.1 MB received

  fields  title        ████████  100 %    description  ███████▉ 99.8 %
          price        ████████  100 %    upc          ▉·······   12 %
          rating       ████████  100 %    url          ████████  100 %
          availability ████····   50 %

  output  runs/books/20261115_113501_x7k2/items.jsonl  1,000 rows   412 kB
          runs/books/20261115_113501_x7k2/items.csv    1,000 rows  90.2 kB

  next    head -n 3 runs/books/20261115_113501_x7k2/items.jsonl
          sluice export 20261115_113501_x7k2 --format csv > books.csv
`,
  )
})

test('summarises a stopped run, with its errors by cause and how to resume', () => {
  assert.equal(
    summaryText(stopped),
    `■ books stopped after 24.3 s                                                run 20261115_113501_x7k2
  stopped by Ctrl-C · exit 4

  pages   812 ok · 15 failed · 31 retried · 222 left
  items   790 new · 1 changed · 3 repeated · 7 invalid
  speed   34 pages/s · 33 items/s · 2.2 MB/s · p50 88 ms · p95 182 ms
  used    CPU 12.3 s (51 %) · RSS max 118 MB · 54.1 MB received

  fields  title ████████  100 %

  errors  12× E_NOT_FOUND     the page does not exist (404 or 410)
              https://shop.example/catalogue/a-light_1000/index.html
           7× E_ITEM_INVALID  an item does not match the scraper’s schema
              https://shop.example/p/7
           3× E_SERVER        server error (5xx)
              https://shop.example/p/1
          see them: sluice dlq groups 20261115_113501_x7k2
          invalid items: errors.jsonl in the run’s folder

  notes   robots.txt of shop.example asks for a crawl-delay of 20 s; 10 s is the longest obeyed

  next    sluice run books --resume 20261115_113501_x7k2
          sluice dlq groups 20261115_113501_x7k2
`,
  )
})

test('stays within 100 columns and within a narrower terminal', () => {
  const long: RunRecord = {
    ...stopped,
    fieldFill: Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`${'field'.repeat(12)}${i}`, i / 40])),
    errors: Array.from({ length: 12 }, (_, i) => ({
      code: `E_${i}`,
      class: 'odd',
      count: 1e9,
      example: `https://x.test/${'a'.repeat(300)}`,
    })),
    outputs: [{ sink: 'jsonl', target: `/tmp/${'deep/'.repeat(60)}items.jsonl`, rows: 1e9, bytes: 1e13 }],
    reason: 'because '.repeat(40),
    warnings: ['beware '.repeat(40)],
  }
  for (const [columns, max] of [
    [200, 100],
    [80, 80],
    [60, 60],
  ] as const) {
    const lines = summaryText(long, { columns, next: [] }).split('\n')
    for (const line of lines) assert.ok(displayWidth(line) <= max, `${displayWidth(line)} > ${max}: ${line}`)
  }
})

test('shows a long reason in full, with the exit code after it', () => {
  const reason = `all 290 pages left wait: shop.example: ${'circuit open: '.repeat(8)}E_SERVER (status 500)`
  const text = summaryText({ ...stopped, reason, exitCode: 4 }, { columns: 80, next: [] })
  assert.ok(text.replace(/\n +/g, ' ').includes(`${reason} · exit 4`), text)
})

test('shows a finished run over its threshold as not ok', () => {
  const text = summaryText({ ...finished, exitCode: 1, reason: '7 % of pages failed (failAt is 5 %)' })
  assert.match(text, /^✘ books finished in 24\.3 s .*\n {2}7 % of pages failed \(failAt is 5 %\) · exit 1\n/)
})

test('keeps the same text with colours', () => {
  const text = summaryText(stopped, { paint: coloured })
  assert.notEqual(text, summaryText(stopped))
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are escape sequences
  assert.equal(text.replace(/\x1b\[\d+m/g, ''), summaryText(stopped))
})

test('does not let a web page write to the terminal', () => {
  const errors = [{ code: 'E_SERVER', class: 'x', count: 1, example: 'https://x.test/\x1b[2J\nfake' }]
  const text = summaryText({ ...stopped, errors })
  assert.ok(!text.includes('\x1b') && !text.includes('\nfake'))
})

test('suggests two commands that fit how the run ended', () => {
  assert.deepEqual(nextCommands({ ...finished, pages: { ...finished.pages, failed: 2, dead: 2 } }), [
    'sluice dlq groups 20261115_113501_x7k2',
    'sluice dlq retry 20261115_113501_x7k2',
  ])
  assert.equal(nextCommands({ ...finished, outputs: [] }).length, 2)
})

test('names the folder of the run in its commands if it is not the default', () => {
  const text = summaryText(stopped, { out: "/data/ana's runs" })
  assert.match(text, /see them: sluice dlq groups 20261115_113501_x7k2 --out '\/data\/ana'\\''s runs'\n/)
  assert.match(text, /--resume 20261115_113501_x7k2 --out '/)
  assert.deepEqual(
    nextCommands(stopped, '/data/runs')[0],
    'sluice run books --resume 20261115_113501_x7k2 --out /data/runs',
  )
})

test('handles a run that did nothing', () => {
  const empty = { ...finished, durationMs: 0, fieldFill: {}, outputs: [], bytes: 0, latencyMs: { p50: 0, p95: 0 } }
  assert.doesNotMatch(summaryText(empty), /NaN|Infinity|undefined/)
})

test('does not call the remaining tasks pages when the run has files', () => {
  assert.match(summaryText(stopped), /pages {3}.* 222 left\n/)
  const withFiles = { ...stopped, files: { ...NO_FILES, stored: 12, bytes: 36e6 } }
  assert.match(summaryText(withFiles), /pages {3}.* 222 left \(pages and files\)\n[\s\S]*files {3}12 stored · 36 MB/)
})
