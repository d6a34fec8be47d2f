import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { ScrapeError } from '../core/errors.ts'
import type { LoggedItem } from '../core/item.ts'
import type { ItemLog, SinkPositions } from '../frontier/contract.ts'
import type { Sink } from './contract.ts'
import { createDrain } from './drain.ts'
import { createJsonlSink } from './jsonl.ts'

/** An item log in memory that enforces its contract. */
class TestLog implements ItemLog {
  items: LoggedItem[] = []
  state: { seq: number; positions: SinkPositions } = { seq: 0, positions: {} }
  confirms = 0
  #reading = false
  #next = 1

  add(count: number): void {
    for (let i = 0; i < count; i++) {
      const seq = this.#next
      this.#next += 1 + (seq % 3)
      this.items.push({ seq, key: `k${seq}`, json: JSON.stringify({ seq }) })
    }
  }

  async read({ afterSeq, max }: { afterSeq: number; max: number }): Promise<LoggedItem[]> {
    assert.equal(this.#reading, false, 'two reads at a time')
    this.#reading = true
    await new Promise((resolve) => setImmediate(resolve))
    this.#reading = false
    return this.items.filter(({ seq }) => seq > afterSeq).slice(0, max)
  }

  async confirm(seq: number, positions: SinkPositions): Promise<void> {
    assert.ok(seq > this.state.seq)
    this.confirms++
    this.state = { seq, positions }
    this.items = this.items.filter((item) => item.seq > seq)
  }

  async confirmed() {
    return this.state
  }
}

/** Keeps items in memory; can be made to wait or fail. */
class TestSink implements Sink {
  name = 'test'
  rows: LoggedItem[] = []
  durable = 0
  isOpen = false
  failAt = Number.POSITIVE_INFINITY
  gate: Promise<void> | undefined

  async open(position: string | undefined): Promise<void> {
    this.rows.length = Number(position ?? 0)
    this.isOpen = true
  }
  async write(items: readonly LoggedItem[]): Promise<void> {
    await this.gate
    this.rows.push(...items)
    if (this.rows.length >= this.failAt) throw new ScrapeError('E_OUTPUT', 'no room')
  }
  async flush(): Promise<string> {
    this.durable = this.rows.length
    return String(this.durable)
  }
  async finish() {
    return { target: 'memory', rows: this.rows.length, bytes: 0 }
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.isOpen = false
  }
}

async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-drain-'))
  t.after(() => rm(folder, { recursive: true }))
  return folder
}

describe('the drain', () => {
  it('moves the items of the log to every sink, confirms them, and finishes the outputs', async () => {
    const log = new TestLog()
    log.add(1_234)
    const expected = [...log.items]
    const sinks = [new TestSink(), Object.assign(new TestSink(), { name: 'other' })]
    await using drain = await createDrain({ log, sinks, batch: 100 })
    const results = await drain.finish()
    for (const sink of sinks) assert.deepEqual(sink.rows, expected)
    assert.deepEqual(log.items, [])
    assert.deepEqual(log.state.positions, { test: '1234', other: '1234' })
    assert.deepEqual(
      results.map(({ rows }) => rows),
      [1_234, 1_234],
    )
    assert.equal(sinks[0]!.isOpen, true)
  })

  it('flushes at 2,000 items while more keep coming, and reports progress', async () => {
    const log = new TestLog()
    log.add(5_000)
    const flushed: { items: number; backlog: number }[] = []
    await using drain = await createDrain({
      log,
      sinks: [new TestSink()],
      flushMsMax: 60_000,
      onFlushed: ({ items, backlog }) => flushed.push({ items, backlog }),
    })
    drain.wake(5_000)
    await drain.drainAll()
    assert.deepEqual(flushed, [
      { items: 2_000, backlog: 3_000 },
      { items: 2_000, backlog: 1_000 },
      { items: 1_000, backlog: 0 },
    ])
  })

  it('flushes a few items by itself after the time limit', async () => {
    const log = new TestLog()
    const flush = Promise.withResolvers<number>()
    await using drain = await createDrain({
      log,
      sinks: [new TestSink()],
      flushMsMax: 20,
      onFlushed: ({ items }) => flush.resolve(items),
    })
    log.add(3)
    drain.wake()
    assert.equal(await flush.promise, 3)
  })

  it('takes items that arrive while it works', async () => {
    const log = new TestLog()
    const sink = new TestSink()
    await using drain = await createDrain({ log, sinks: [sink] })
    for (let round = 0; round < 20; round++) {
      log.add(17)
      drain.wake()
      await new Promise((resolve) => setImmediate(resolve))
    }
    await drain.drainAll()
    assert.equal(sink.rows.length, 340)
    assert.equal(new Set(sink.rows.map(({ seq }) => seq)).size, 340)
  })

  it('waits for a slow sink before it reads on', async () => {
    const log = new TestLog()
    log.add(1_000)
    const sink = new TestSink()
    const gate = Promise.withResolvers<void>()
    sink.gate = gate.promise
    await using drain = await createDrain({ log, sinks: [sink], batch: 10 })
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    assert.equal(sink.rows.length, 0)
    gate.resolve()
    await drain.drainAll()
    assert.equal(sink.rows.length, 1_000)
  })

  it('passes the error of a sink to waiting callers, and confirms nothing after it', async () => {
    const log = new TestLog()
    log.add(3_000)
    const sink = Object.assign(new TestSink(), { failAt: 2_500 })
    await using drain = await createDrain({ log, sinks: [sink], batch: 500 })
    await assert.rejects(drain.drainAll(), /no room/)
    await assert.rejects(drain.ended, /no room/)
    await assert.rejects(drain.drainAll(), /no room/)
    await assert.rejects(drain.finish(), /no room/)
    assert.equal(log.state.positions.test, '2000')
    assert.equal(log.items.length, 1_000)
  })

  it('stops on its signal, and waiting callers get the reason', async () => {
    const log = new TestLog()
    log.add(100)
    const stop = new AbortController()
    const sink = new TestSink()
    const gate = Promise.withResolvers<void>()
    sink.gate = gate.promise
    await using drain = await createDrain({ log, sinks: [sink], signal: stop.signal })
    const waiting = drain.drainAll()
    stop.abort(new Error('enough'))
    gate.resolve()
    await assert.rejects(waiting, /enough/)
    await drain.ended
  })

  it('may be disposed twice, and leaves no sink open', async () => {
    const sink = new TestSink()
    const drain = await createDrain({ log: new TestLog(), sinks: [sink] })
    await drain[Symbol.asyncDispose]()
    await drain[Symbol.asyncDispose]()
    assert.equal(sink.isOpen, false)
    await assert.rejects(drain.drainAll(), /stopped/)
  })

  it('closes the sinks it opened when another does not open', async () => {
    const good = new TestSink()
    const bad = Object.assign(new TestSink(), { name: 'bad', open: () => Promise.reject(new Error('no such disk')) })
    await assert.rejects(createDrain({ log: new TestLog(), sinks: [good, bad] }), /no such disk/)
    assert.equal(good.isOpen, false)
  })

  it('refuses to resume with other sinks than the run had', async () => {
    const log = new TestLog()
    log.add(10)
    {
      await using drain = await createDrain({ log, sinks: [new TestSink()] })
      await drain.drainAll()
    }
    const other = Object.assign(new TestSink(), { name: 'csv' })
    for (const sinks of [[other], [new TestSink(), other], []]) {
      await assert.rejects(
        createDrain({ log, sinks }),
        (error) => error instanceof ScrapeError && error.code === 'E_OPTION' && /writes to test/.test(error.message),
      )
    }
  })

  it('leaves every item once in the file, wherever it was interrupted', async (t) => {
    const path = join(await temporaryFolder(t), 'items.jsonl')
    const log = new TestLog()
    const total = 400
    log.add(total)
    const expected = log.items.map(({ json }) => `${json}\n`).join('')
    for (let life = 0; log.items.length > 0; life++) {
      assert.ok(life < 200)
      const stop = new AbortController()
      let steps = life % 7
      const read = log.read.bind(log)
      const confirm = log.confirm.bind(log)
      // The n-th call of this run fails: before, between, or after write and confirm.
      const interrupted: ItemLog = {
        confirmed: () => log.confirmed(),
        read: async (options) => {
          if (steps-- === 0) throw new Error('killed')
          return await read(options)
        },
        confirm: async (seq, positions) => {
          if (steps-- === 0) throw new Error('killed')
          await confirm(seq, positions)
        },
      }
      await using drain = await createDrain({
        log: interrupted,
        sinks: [createJsonlSink({ path })],
        batch: 10,
        flushItemsMax: 20,
        signal: stop.signal,
      })
      await drain.drainAll().catch((error: Error) => assert.equal(error.message, 'killed'))
    }
    assert.equal(await readFile(path, 'utf8'), expected)
  })
})
