/**
 * What every sink must do, as checks that run against any sink: each of ours, and deliberately broken ones, which must fail.
 */
import assert from 'node:assert/strict'
import { copyFile, mkdtemp, rm, stat, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { ScrapeError } from '../core/errors.ts'
import type { LoggedItem } from '../core/item.ts'
import type { Sink, SinkSetup } from './contract.ts'

/** An item for the checks: every kind of value a field can have, and text that breaks careless formats. */
export interface Row {
  id: number
  text: string
  price: number | null
  isSold: boolean
  tags: readonly string[]
}
export const ROW_FIELDS = ['id', 'text', 'price', 'isSold', 'tags'] as const

interface SinkUnderTest {
  /** A new sink on the same output with every call, as after a restart. */
  create(): Sink
  /** What a reader finds in the finished output, in the order of the log. */
  rows(): Promise<Row[]>
  /** The growing file whose end a crash may leave incomplete; undefined for outputs of another kind. */
  tail?: string
}
export type MakeSink = (setup: SinkSetup) => SinkUnderTest

interface SinkCheck {
  title: string
  run: (output: SinkUnderTest) => Promise<void>
}

/** Registers the checks as tests. */
export function sinkConformance(name: string, make: MakeSink): void {
  describe(`${name} as a sink`, () => {
    for (const check of sinkChecks) it(check.title, () => runSinkCheck(check, make))
  })
}

/** Runs one check on a fresh output in a separate folder. */
export async function runSinkCheck(check: SinkCheck, make: MakeSink): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-sink-'))
  try {
    await check.run(make({ scraper: 'rows', runId: '20260131_120000_ab', fields: ROW_FIELDS, folder }))
  } finally {
    await rm(folder, { recursive: true })
  }
}

const NASTY = [
  'plain',
  '',
  'comma, "quote", \'single\'',
  'line\nbreak\r\nand\rmore',
  'tab\t and \u0000 NUL and \u001b escape',
  'ünïcödé £ 日本語 👩‍👩‍👧 \u2028 \u2029 \ufeff',
  '=1+1',
  '-5',
  ' spaces around ',
  'back\\slash \\n \\u0041',
  '{"json":"inside"}',
  'null',
  '"',
  '1,2',
  'x'.repeat(70_000),
]

function row(id: number, text = NASTY[id % 14]!): Row {
  return {
    id,
    text,
    price: id % 3 === 0 ? null : id / 4,
    isSold: id % 2 === 0,
    tags: id % 5 === 0 ? [] : ['a', text.slice(0, 9)],
  }
}

function rowsOf(from: number, to: number): Row[] {
  return Array.from({ length: to - from }, (_, i) => row(from + i))
}

/** `seq` leaves gaps, as the contract allows. */
function logged(rows: readonly Row[]): LoggedItem[] {
  return rows.map((row) => ({ seq: (row.id + 1) * 3, key: `row ${row.id}`, json: JSON.stringify(row) }))
}

/** Opens, lets `use` write, and closes without finishing, like a process that ends early. */
async function session<T>(
  output: SinkUnderTest,
  position: string | undefined,
  use: (sink: Sink) => Promise<T>,
): Promise<T> {
  await using sink = output.create()
  await sink.open(position)
  return await use(sink)
}

async function writeAndFlush(sink: Sink, rows: readonly Row[]): Promise<string> {
  await sink.write(logged(rows))
  return await sink.flush()
}

/** What a resumed run does after its last item; returns what a reader then finds. */
async function finishAt(
  output: SinkUnderTest,
  position: string | undefined,
  rest: readonly Row[] = [],
): Promise<Row[]> {
  const result = await session(output, position, async (sink) => {
    if (rest.length > 0) await writeAndFlush(sink, rest)
    return await sink.finish()
  })
  const found = await output.rows()
  assert.equal(result.rows, found.length, 'finish() counts the rows a reader finds')
  return found
}

async function isRefused(work: Promise<unknown>): Promise<void> {
  await assert.rejects(work, (error) => error instanceof ScrapeError && error.code === 'E_OUTPUT')
}

/** Every check, to be run individually: `await check.run(…)` rejects if the sink breaks the promise. */
export const sinkChecks: readonly SinkCheck[] = [
  {
    title: 'writes every item once, in order',
    async run(output) {
      const found = await session(output, undefined, async (sink) => {
        for (let from = 0; from < 30; from += 7) await sink.write(logged(rowsOf(from, Math.min(30, from + 7))))
        await sink.flush()
        const result = await sink.finish()
        assert.equal(result.rows, 30)
        assert.ok(result.bytes > 0)
        assert.ok((await stat(result.target)).isFile(), 'the target is the file a person opens')
        return await output.rows()
      })
      assert.deepEqual(found, rowsOf(0, 30))
    },
  },
  {
    title: 'keeps any text as it is: unicode, newlines, quotes, commas, NUL, formulas, 70,000 characters',
    async run(output) {
      const rows = NASTY.map((text, id) => row(id, text))
      const found = await finishAt(output, undefined, rows)
      assert.deepEqual(found, rows)
    },
  },
  {
    title: 'leaves an empty, readable output after a run without items',
    async run(output) {
      assert.deepEqual(await finishAt(output, undefined), [])
    },
  },
  {
    title: 'goes on after the position it is given',
    async run(output) {
      const position = await session(output, undefined, (sink) => writeAndFlush(sink, rowsOf(0, 10)))
      assert.deepEqual(await finishAt(output, position, rowsOf(10, 20)), rowsOf(0, 20))
    },
  },
  {
    title: 'forgets what was flushed after the position it is given',
    async run(output) {
      const position = await session(output, undefined, async (sink) => {
        const position = await writeAndFlush(sink, rowsOf(0, 10))
        await writeAndFlush(sink, rowsOf(10, 15))
        return position
      })
      assert.deepEqual(await finishAt(output, position), rowsOf(0, 10))
    },
  },
  {
    title: 'repeats nothing when the process died between write and confirm, at any of three flushes',
    async run(output) {
      let position: string | undefined
      for (let start = 0; start < 9; start += 3) {
        // Each time: written and flushed, but the confirm was lost; then the same items again, confirmed; then more, unflushed.
        const from = position
        await session(output, from, (sink) => writeAndFlush(sink, rowsOf(start, start + 3)))
        position = await session(output, from, async (sink) => {
          const confirmed = await writeAndFlush(sink, rowsOf(start, start + 3))
          await sink.write(logged(rowsOf(start + 3, start + 5)))
          return confirmed
        })
      }
      assert.deepEqual(await finishAt(output, position), rowsOf(0, 9))
    },
  },
  {
    title: 'starts over when the run died before its first confirm',
    async run(output) {
      await session(output, undefined, (sink) => writeAndFlush(sink, rowsOf(0, 5)))
      assert.deepEqual(await finishAt(output, undefined, rowsOf(0, 3)), rowsOf(0, 3))
    },
  },
  {
    title: 'cuts off a record torn at any byte, and refuses a file shorter than confirmed, or gone',
    async run(output) {
      const { tail } = output
      if (tail === undefined) return // the output is a database: its own journal does this, and its own test proves it
      const position = await session(output, undefined, (sink) => writeAndFlush(sink, rowsOf(0, 4)))
      const confirmedBytes = (await stat(tail)).size
      const last = row(4, 'é,"\n’')
      await session(output, position, (sink) => writeAndFlush(sink, [last]))
      const allBytes = (await stat(tail)).size
      assert.ok(allBytes > confirmedBytes, 'flush brought the record to the file')
      const saved = `${tail}.saved`
      await copyFile(tail, saved)
      for (let bytes = confirmedBytes; bytes <= allBytes; bytes++) {
        await copyFile(saved, tail)
        await truncate(tail, bytes)
        const again = await session(output, position, (sink) => writeAndFlush(sink, [last]))
        assert.equal((await stat(tail)).size, allBytes, `torn at byte ${bytes}`)
        assert.notEqual(again, position)
        if (bytes === confirmedBytes + 7) assert.deepEqual(await finishAt(output, again), [...rowsOf(0, 4), last])
      }
      for (const bytes of [confirmedBytes - 1, 0]) {
        await copyFile(saved, tail)
        await truncate(tail, bytes)
        await isRefused(session(output, position, async () => undefined))
      }
      await rm(tail)
      await isRefused(session(output, position, async () => undefined))
    },
  },
  {
    title: 'gives a position that stands for what is durable: flush without items changes nothing',
    async run(output) {
      const position = await session(output, undefined, async (sink) => {
        const first = await writeAndFlush(sink, rowsOf(0, 3))
        await sink.write([])
        assert.equal(await sink.flush(), first)
        return first
      })
      const reopened = await session(output, position, (sink) => sink.flush())
      assert.equal(reopened, position)
      assert.deepEqual(await finishAt(output, reopened), rowsOf(0, 3))
    },
  },
  {
    title: 'can be finished again by a process that does not know the first one did',
    async run(output) {
      const position = await session(output, undefined, async (sink) => {
        const position = await writeAndFlush(sink, rowsOf(0, 6))
        await sink.finish()
        return position
      })
      assert.deepEqual(await finishAt(output, position), rowsOf(0, 6))
      assert.deepEqual(await finishAt(output, position), rowsOf(0, 6))
    },
  },
  {
    title: 'may be disposed twice, and before it was opened',
    async run(output) {
      const sink = output.create()
      await sink[Symbol.asyncDispose]()
      await sink.open(undefined)
      await sink[Symbol.asyncDispose]()
      await sink[Symbol.asyncDispose]()
    },
  },
  {
    title: 'carries 3,000 items over many flushes',
    async run(output) {
      const position = await session(output, undefined, async (sink) => {
        let position = ''
        for (let from = 0; from < 3_000; from += 150) {
          await sink.write(logged(rowsOf(from, from + 150)))
          if (from % 600 === 450) position = await sink.flush()
        }
        return position
      })
      assert.deepEqual(await finishAt(output, position), rowsOf(0, 3_000))
    },
  },
]
