import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { type MakeSink, ROW_FIELDS, type Row, runSinkCheck, sinkChecks, sinkConformance } from './conformance.ts'
import type { Sink } from './contract.ts'
import { createCsvSink } from './csv.ts'
import { parseCsv } from './csv-reader.test-kit.ts'
import { createJsonlSink } from './jsonl.ts'
import { ParquetSink } from './parquet.ts'
import { SqliteSink } from './sqlite.ts'

const jsonl: MakeSink = ({ folder }) => {
  const path = join(folder, 'items.jsonl')
  return { create: () => createJsonlSink({ path }), rows: () => readJsonl(path), tail: path }
}

const csv: MakeSink = ({ folder }) => {
  const path = join(folder, 'items.csv')
  return { create: () => createCsvSink({ path, columns: ROW_FIELDS }), rows: () => readCsv(path), tail: path }
}

/** Columns not known in advance: the first item determines them. */
const csvByFirstItem: MakeSink = ({ folder }) => {
  const path = join(folder, 'items.csv')
  return { create: () => createCsvSink({ path, columns: [] }), rows: () => readCsv(path), tail: path }
}

const parquet: MakeSink = ({ folder, fields }) => {
  const path = join(folder, 'items.parquet')
  return {
    create: () => new ParquetSink({ path, fields }),
    rows: async () => (await parquetReadObjects({ file: await asyncBufferFromFile(path) })) as unknown as Row[],
    tail: `${path}.part`,
  }
}

const sqlite: MakeSink = (setup) => {
  const path = join(setup.folder, 'items.db')
  return { create: () => new SqliteSink({ path, setup }), rows: async () => readSqlite(path) }
}

sinkConformance('JSON Lines', jsonl)
sinkConformance('CSV', csv)
sinkConformance('CSV whose columns the first item names', csvByFirstItem)
sinkConformance('Parquet', parquet)
sinkConformance('SQLite', sqlite)

async function readJsonl(path: string): Promise<Row[]> {
  const text = await readFile(path, 'utf8')
  if (text === '') return []
  assert.ok(text.endsWith('\n'))
  return text
    .slice(0, -1)
    .split('\n')
    .map((line) => JSON.parse(line) as Row)
}

async function readCsv(path: string): Promise<Row[]> {
  const [header, ...records] = parseCsv(await readFile(path, 'utf8'))
  if (header !== undefined) assert.deepEqual(header, ROW_FIELDS)
  return records.map(([id, text, price, isSold, tags]) => ({
    id: Number(id),
    text: text!,
    price: price === '' ? null : Number(price),
    isSold: isSold === 'true',
    tags: JSON.parse(tags!),
  }))
}

function readSqlite(path: string): Row[] {
  using db = new DatabaseSync(path, { readOnly: true })
  const rows = db.prepare('SELECT id, text, price, isSold, tags FROM rows ORDER BY _seq').all()
  return rows.map((row) => ({ ...row, isSold: row.isSold === 1, tags: JSON.parse(String(row.tags)) }) as unknown as Row)
}

/** Mistakes that have all been seen in practice. Each must fail at least one check. */
const broken: Record<string, MakeSink> = {
  'appends after a restart without cutting': wrap((sink) => ({
    ...sink,
    open: (position) => (position === undefined ? sink.open(undefined) : sink.open(grown(sink, position))),
  })),
  'starts over at every open': wrap((sink) => ({ ...sink, open: () => sink.open(undefined) })),
  'returns a position before the bytes are in the file': wrap((sink) => {
    let before = '0:0'
    return {
      ...sink,
      flush: async () => {
        const position = before
        before = await sink.flush()
        return position
      },
    }
  }),
  'drops the last item of a batch': wrap((sink) => ({ ...sink, write: (items) => sink.write(items.slice(0, -1)) })),
  'writes a batch twice': wrap((sink) => ({
    ...sink,
    write: async (items) => {
      await sink.write(items)
      await sink.write(items)
    },
  })),
  'writes out of order': wrap((sink) => ({ ...sink, write: (items) => sink.write(items.toReversed()) })),
  'keeps items until finish': wrap((sink) => {
    const kept: Parameters<Sink['write']>[0][number][] = []
    return {
      ...sink,
      write: async (items) => void kept.push(...items),
      finish: async () => {
        await sink.write(kept)
        return sink.finish()
      },
    }
  }),
  'counts rows wrongly after a restart': wrap((sink) => ({
    ...sink,
    open: (position) => sink.open(position?.replace(/:\d+$/, ':0')),
  })),
  'takes a missing file for an empty one': wrap((sink) => ({
    ...sink,
    open: (position) => sink.open(position).catch(() => sink.open(undefined)),
  })),
  'damages text beyond ASCII': wrap((sink) => ({
    ...sink,
    write: (items) => sink.write(items.map((item) => ({ ...item, json: item.json.replace(/[^\x20-\x7e]/g, '?') }))),
  })),
  'breaks records at newlines': wrap((sink) => ({
    ...sink,
    write: (items) => sink.write(items.map((item) => ({ ...item, json: item.json.replaceAll('\\n', '\n') }))),
  })),
}

function grown(sink: { path: string }, position: string): string {
  const rows = position.split(':')[1]
  return `${statSync(sink.path).size}:${rows}`
}

/** A JSON Lines sink with one thing changed. */
function wrap(change: (sink: Sink & { path: string }) => Sink): MakeSink {
  return (setup) => {
    const output = jsonl(setup)
    return {
      ...output,
      create: () => {
        const sink = createJsonlSink({ path: output.tail! })
        return change({
          name: sink.name,
          path: sink.path,
          open: (position) => sink.open(position),
          write: (items) => sink.write(items),
          flush: () => sink.flush(),
          finish: () => sink.finish(),
          [Symbol.asyncDispose]: () => sink[Symbol.asyncDispose](),
        })
      },
    }
  }
}

describe('the sink checks', () => {
  for (const [name, make] of Object.entries(broken)) {
    it(`reject a sink that ${name}`, async () => {
      const passed: string[] = []
      for (const check of sinkChecks) {
        const isPassed = await runSinkCheck(check, make).then(
          () => true,
          () => false,
        )
        if (!isPassed) return
        passed.push(check.title)
      }
      assert.fail(`it passed all ${passed.length} checks`)
    })
  }

  it('accept the same sink unchanged', async () => {
    for (const check of sinkChecks)
      await runSinkCheck(
        check,
        wrap((sink) => sink),
      )
  })
})
