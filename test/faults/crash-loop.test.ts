/** Promise 1: kill -9 at any moment, any number of times, loses no item, repeats none and leaves every count exact. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { NO_FILES } from '../../src/core/run.ts'
import { booksRun, DETAILS, itemsIn, recordIn } from '../books-run.ts'
import { fillOf } from '../fleet.ts'
import { type BooksSite, PAGE_SIZE, startBooksSite, truth } from '../site/books.ts'
import { startSluice, temporaryFolder } from '../sluice.ts'
import { killMoment } from './kill-moment.ts'

const PRODUCTS = 1200
/** Slow enough that kills hit a run half-way. */
const DELAY_MS = 12

test('ends with every item once and exact counts after a process was killed at random moments, many times', async () => {
  await using site = await startBooksSite({ products: PRODUCTS, delayMs: DELAY_MS })
  using folder = temporaryFolder()
  const kills = await killUntilDone({ site, out: folder.path, killsMax: 18, args: [], victims: (pid) => [pid] })
  assert.ok(kills >= 10, `only ${kills} kills hit the run`)
  assertComplete(site, folder.path)
})

test('ends with every item once and exact counts after two workers and their parent were killed in random order', async () => {
  await using site = await startBooksSite({ products: PRODUCTS, delayMs: DELAY_MS })
  using folder = temporaryFolder()
  const victims = (pid: number, i: number) => (i % 3 === 0 ? [pid] : workersOf(pid).slice(0, 1))
  const kills = await killUntilDone({ site, out: folder.path, killsMax: 12, args: ['--processes', '2'], victims })
  assert.ok(kills >= 6, `only ${kills} kills hit the run`)
  assertComplete(site, folder.path)
})

let quietBytes = 0

before(async () => {
  await using site = await startBooksSite({ products: PRODUCTS })
  using folder = temporaryFolder()
  const { code, stderr } = await startSluice(runCommand(site, folder.path)).result
  assert.equal(code, 0, stderr)
  quietBytes = recordIn(folder.path).bytes
})

const runCommand = (site: BooksSite, out: string) => booksRun(site, out, ...DETAILS, '--quiet')

interface KillRequest {
  site: BooksSite
  out: string
  killsMax: number
  args: string[]
  /** Which processes die at the i-th kill. Empty: there was nothing to kill. */
  victims: (pid: number, i: number) => number[]
}

/** Starts, kills and resumes until a run ends on its own. Returns how many kills hit. */
async function killUntilDone({ site, out, killsMax, args, victims }: KillRequest): Promise<number> {
  const run = [...runCommand(site, out), ...args]
  let kills = 0
  for (let start = 0; ; start++) {
    const { child, result } = startSluice(start === 0 ? run : [...run, '--resume'])
    let isRunning = true
    void result.finally(() => {
      isRunning = false
    })
    while (isRunning && kills < killsMax) {
      await killMoment(site, 60, [result])
      if (!isRunning) break
      const pids = victims(child.pid!, kills)
      for (const pid of pids) process.kill(pid, 'SIGKILL')
      if (pids.length > 0) kills++
      if (pids.includes(child.pid!)) break
    }
    const { code, signal, stderr } = await result
    if (signal === 'SIGKILL') continue
    // Killed before the folder held a run: there is nothing to resume yet, so the next start is a fresh one.
    if (code === 2 && stderr.includes('E_RUN_NOT_FOUND')) {
      start = -1
      continue
    }
    assert.equal(code, 0, stderr)
    return kills
  }
}

function workersOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
  return children.map(Number).sort(() => Math.random() - 0.5)
}

function assertComplete(site: BooksSite, out: string): void {
  const expected = [...truth(PRODUCTS)]
  const lines = itemsIn(out)
  const items = new Map(lines.map((item) => [item.url, item]))
  assert.equal(lines.length, expected.length, 'one line for each book')
  assert.equal(items.size, expected.length, 'no book twice')
  for (const book of expected) {
    const item = items.get(new URL(book.path, site.url).href)
    assert.ok(item !== undefined, `${book.path} is missing`)
    assert.deepEqual(
      [
        item.title,
        item.price_numeric,
        item.rating_numeric,
        item.upc,
        item.stock,
        item.category,
        item.description ?? null,
      ],
      [book.title, book.priceNumeric, book.ratingNumeric, book.upc, book.stock, book.category, book.description],
    )
  }
  const records = readFileSync(join(out, 'books', 'latest', 'items.csv'), 'utf8').split('\r\n')
  assert.equal(
    records.filter((record) => record.includes('/catalogue/')).length,
    expected.length,
    'the same number in the CSV',
  )
  assert.equal(records.at(-1), '', 'no torn record at the end')
  assertCounts(out, [...items.values()])
}

/** As if it had never been killed: the record matches the output, and the record of an undisturbed run. */
function assertCounts(out: string, items: Record<string, unknown>[]): void {
  const { pages, files, errors, bytes, fieldFill, ...record } = recordIn(out)
  const listings = Math.ceil(PRODUCTS / PAGE_SIZE)
  assert.deepEqual(pages, { ok: PRODUCTS + listings, failed: 0, retried: 0, postponed: 0, remaining: 0, dead: 0 })
  assert.deepEqual(record.items, { new: PRODUCTS, same: 0, changed: 0, invalid: 0 })
  assert.deepEqual([errors, files], [[], NO_FILES])
  assert.deepEqual(fieldFill, fillOf(items))
  assert.equal(bytes, quietBytes)
}
