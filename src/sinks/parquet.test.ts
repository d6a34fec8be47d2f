import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects, parquetSchema } from 'hyparquet'
import { ParquetSink } from './parquet.ts'

async function folderOf(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-parquet-'))
  t.after(() => rm(folder, { recursive: true }))
  return folder
}

async function written(t: TestContext, items: readonly object[], fields: readonly string[]) {
  const folder = await folderOf(t)
  const path = join(folder, 'items.parquet')
  await using sink = new ParquetSink({ path, fields })
  await sink.open(undefined)
  for (let from = 0; from < items.length; from += 5_000) {
    await sink.write(
      items
        .slice(from, from + 5_000)
        .map((item, i) => ({ seq: from + i + 1, key: String(i), json: JSON.stringify(item) })),
    )
  }
  const result = await sink.finish()
  const file = await asyncBufferFromFile(path)
  const metadata = await parquetMetadataAsync(file)
  const types = parquetSchema(metadata).children.map(({ element }) => [
    element.name,
    element.converted_type ?? element.type,
  ])
  return { folder, result, metadata, types: Object.fromEntries(types), rows: await parquetReadObjects({ file }) }
}

describe('the Parquet sink', () => {
  it('derives the type of each column from the data', async (t) => {
    const items = [
      { text: 'a', int: 1, big: 1, real: 1, flag: true, nested: { a: 1 }, mixed: 'x', none: null },
      { text: 'é', int: -5, big: 2 ** 40, real: 0.5, flag: false, nested: [1], mixed: 7 },
      { extra: 'late' },
    ]
    const { rows, types } = await written(t, items, ['text', 'int'])
    assert.deepEqual(types, {
      text: 'UTF8',
      int: 'INT32',
      big: 'INT64',
      real: 'DOUBLE',
      flag: 'BOOLEAN',
      nested: 'JSON',
      mixed: 'JSON',
      none: 'UTF8',
      extra: 'UTF8',
    })
    assert.deepEqual(
      rows.map(({ text, int, big, real, flag, nested, mixed, extra }) => [
        text,
        int,
        big,
        real,
        flag,
        nested,
        mixed,
        extra,
      ]),
      [
        ['a', 1, 1n, 1, true, { a: 1 }, 'x', null],
        ['é', -5, 2n ** 40n, 0.5, false, [1], 7, null],
        [null, null, null, null, null, null, null, 'late'],
      ],
    )
  })

  it('writes row groups of limited size', async (t) => {
    const items = Array.from({ length: 45_000 }, (_, n) => ({ n, text: `row ${n}` }))
    const { rows, metadata, result } = await written(t, items, ['n', 'text'])
    assert.deepEqual(
      metadata.row_groups.map(({ num_rows }) => Number(num_rows)),
      [20_000, 20_000, 5_000],
    )
    assert.equal(rows.length, 45_000)
    assert.deepEqual(rows[44_999], items[44_999])
    assert.equal(result.rows, 45_000)
  })

  it('leaves the file, and next to it only the part it was made from', async (t) => {
    const { folder } = await written(t, [{ a: 1 }], ['a'])
    assert.deepEqual((await readdir(folder)).sort(), ['items.parquet', 'items.parquet.part'])
  })

  it('writes an empty table of the known fields for a run without items, or of none', async (t) => {
    assert.deepEqual((await written(t, [], ['a', 'b'])).types, { a: 'UTF8', b: 'UTF8' })
    assert.deepEqual((await written(t, [], [])).rows, [])
  })

  it('continues after it was finished, when retried dead letters bring more items', async (t) => {
    const path = join(await folderOf(t), 'x.parquet')
    let position: string
    {
      await using first = new ParquetSink({ path, fields: ['a'] })
      await first.open(undefined)
      await first.write([{ seq: 1, key: '1', json: '{"a":1}' }])
      position = await first.flush()
      await first.finish()
    }
    await using second = new ParquetSink({ path, fields: ['a'] })
    await second.open(position)
    await second.write([{ seq: 2, key: '2', json: '{"a":2}' }])
    await second.finish()
    assert.deepEqual(await parquetReadObjects({ file: await asyncBufferFromFile(path) }), [{ a: 1 }, { a: 2 }])
  })
})
