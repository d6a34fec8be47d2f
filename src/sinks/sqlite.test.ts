import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { ScrapeError } from '../core/errors.ts'
import type { SinkSetup } from './contract.ts'
import { SqliteSink } from './sqlite.ts'

async function place(t: TestContext): Promise<{ path: string; setup: SinkSetup }> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-sqlite-'))
  t.after(() => rm(folder, { recursive: true }))
  return { path: join(folder, 'x.db'), setup: { scraper: 'my-books', runId: 'r1', fields: ['title', 'price'], folder } }
}

const item = (seq: number, value: object, key = `k${seq}`) => ({ seq, key, json: JSON.stringify(value) })

function query(path: string, sql: string): Record<string, unknown>[] {
  using db = new DatabaseSync(path, { readOnly: true })
  return db
    .prepare(sql)
    .all()
    .map((row) => ({ ...row }))
}

describe('the SQLite sink', () => {
  it('keeps the type of every value and adds columns for new fields', async (t) => {
    const { path, setup } = await place(t)
    await using sink = new SqliteSink({ path, setup })
    await sink.open(undefined)
    await sink.write([
      item(1, { title: '007', price: 5 }),
      item(2, { title: 12, price: 5.5, isNew: true, 'odd "name"': { a: [1] } }),
      item(3, { title: null }),
    ])
    await sink.finish()
    assert.deepEqual(
      query(
        path,
        'SELECT typeof(title) AS a, typeof(price) AS b, title, price, isNew, "odd ""name""" AS odd FROM my_books',
      ),
      [
        { a: 'text', b: 'integer', title: '007', price: 5, isNew: null, odd: null },
        { a: 'integer', b: 'real', title: 12, price: 5.5, isNew: 1, odd: '{"a":[1]}' },
        { a: 'null', b: 'null', title: null, price: null, isNew: null, odd: null },
      ],
    )
  })

  it('replaces by key what an earlier run wrote, and keeps the rest', async (t) => {
    const { path, setup } = await place(t)
    for (const [runId, price] of [
      ['r1', 1],
      ['r2', 2],
    ] as const) {
      await using sink = new SqliteSink({ path, setup: { ...setup, runId } })
      await sink.open(undefined)
      await sink.write([item(1, { title: 'same', price }, 'same'), item(2, { title: runId }, runId)])
      assert.equal((await sink.finish()).rows, 2)
    }
    assert.deepEqual(query(path, 'SELECT _key, _run, price FROM my_books ORDER BY _key'), [
      { _key: 'r1', _run: 'r1', price: null },
      { _key: 'r2', _run: 'r2', price: null },
      { _key: 'same', _run: 'r2', price: 2 },
    ])
  })

  it('refuses to resume a file that lacks confirmed items, or is not a database', async (t) => {
    const { path, setup } = await place(t)
    const isOutputError = (error: unknown) => error instanceof ScrapeError && error.code === 'E_OUTPUT'
    await using empty = new SqliteSink({ path, setup })
    await assert.rejects(empty.open('7'), isOutputError)
    await writeFile(`${path}.txt`, 'this is no database, and long enough to be read as a header of one'.repeat(20))
    await using wrong = new SqliteSink({ path: `${path}.txt`, setup })
    await assert.rejects(wrong.open(undefined), isOutputError)
  })

  it('contains exactly what it reported to its killed process, and continues from there', async (t) => {
    const { path, setup } = await place(t)
    const script = `
      import { SqliteSink } from ${JSON.stringify(new URL('./sqlite.ts', import.meta.url).href)}
      const sink = new SqliteSink(${JSON.stringify({ path, setup })})
      await sink.open(undefined)
      for (let seq = 1; ; ) {
        for (let i = 0; i < 3; i++, seq++) await sink.write([{ seq, key: 'k' + seq, json: JSON.stringify({ title: 't' + seq }) }])
        console.log(await sink.flush())
      }`
    const child = spawn(process.execPath, ['--no-warnings', '--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let position = ''
    for await (const line of createInterface(child.stdout)) {
      position = line
      if (Number(line) >= 60) child.kill('SIGKILL')
    }
    if (child.signalCode === null) await once(child, 'exit')
    await using sink = new SqliteSink({ path, setup })
    await sink.open(position)
    const last = Number(position)
    await sink.write([item(last + 1, { title: 'after' })])
    assert.equal((await sink.finish()).rows, last + 1)
    assert.deepEqual(query(path, 'SELECT count(*) AS n, max(_seq) AS last FROM my_books'), [
      { n: last + 1, last: last + 1 },
    ])
  })
})
