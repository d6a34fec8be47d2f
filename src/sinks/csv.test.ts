import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { ScrapeError } from '../core/errors.ts'
import { type CsvOptions, createCsvSink } from './csv.ts'
import { parseCsv } from './csv-reader.test-kit.ts'

async function written(items: readonly object[], options: Omit<CsvOptions, 'path'>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-csv-'))
  try {
    await using sink = createCsvSink({ path: join(folder, 'x.csv'), ...options })
    await sink.open(undefined)
    await sink.write(items.map((item, i) => ({ seq: i + 1, key: String(i), json: JSON.stringify(item) })))
    await sink.finish()
    return await readFile(join(folder, 'x.csv'), 'utf8')
  } finally {
    await rm(folder, { recursive: true })
  }
}

describe('CSV', () => {
  it('writes a header and CRLF records, with quotes only where they are needed', async () => {
    const items = [
      { title: 'A Light', price: 51.77, isSold: false, tags: ['a', 'b'], note: null },
      { title: 'say "hi", twice', price: -0.5, isSold: true, tags: {}, note: 'two\nlines' },
    ]
    assert.equal(
      await written(items, { columns: ['title', 'price', 'isSold', 'tags', 'note'] }),
      'title,price,isSold,tags,note\r\n' +
        'A Light,51.77,false,"[""a"",""b""]",\r\n' +
        '"say ""hi"", twice",-0.5,true,{},"two\nlines"\r\n',
    )
  })

  it('writes the same record whatever the order of an item’s fields, and whichever are missing', async () => {
    const columns = ['constructor', 'a', 'b', 'c']
    const whole = { constructor: 'x', a: 1, b: 'y,z', c: null }
    const names = Object.keys(whole) as (keyof typeof whole)[]
    for (let mask = 0; mask < 16; mask++) {
      const own = names.filter((_, i) => (mask & (1 << i)) !== 0)
      const expected = names.map((name) =>
        own.includes(name) ? { x: 'x', 1: '1', 'y,z': '"y,z"', null: '' }[`${whole[name]}`] : '',
      )
      for (const order of [own, own.toReversed(), [...own.slice(1), ...own.slice(0, 1), 'more']]) {
        const item = Object.fromEntries(order.map((name) => [name, (whole as Record<string, unknown>)[name] ?? null]))
        assert.equal(await written([item], { columns }), `${columns}\r\n${expected.join(',')}\r\n`)
      }
    }
    assert.equal(await written([{}, { a: '' }, { b: 1 }], { columns: ['a'] }), 'a\r\n""\r\n""\r\n""\r\n')
  })

  it('puts the columns in the scraper’s order', async () => {
    const items = [{ a: 1, b: 2, c: 3 }]
    assert.equal(await written(items, { columns: ['c', 'a'] }), 'c,a\r\n3,1\r\n')
  })

  it('uses the columns of the first item if none are known', async () => {
    const items = [
      { b: 1, a: 2 },
      { a: 3, c: 4 },
    ]
    assert.equal(await written(items, { columns: [] }), 'b,a\r\n1,2\r\n,3\r\n')
  })

  it('ends lines with LF if requested', async () => {
    assert.equal(await written([{ a: 1, b: 'x\ny' }], { columns: ['a', 'b'], lineEnd: '\n' }), 'a,b\n1,"x\ny"\n')
  })

  it('escapes text that a spreadsheet would run as a formula, and leaves numbers alone', async () => {
    const items = ['=1+1', '+1', '-1', '@x', '\tx', '\rx', '\nx', 'a=1', -1].map((v) => ({ v, w: 0 }))
    const text = await written(items, { columns: ['v', 'w'], formulaSafe: true })
    assert.deepEqual(
      parseCsv(text)
        .slice(1)
        .map(([v]) => v),
      ["'=1+1", "'+1", "'-1", "'@x", "'\tx", "'\rx", "'\nx", 'a=1', '-1'],
    )
    const raw = await written(items, { columns: ['v', 'w'] })
    assert.equal(parseCsv(raw)[1]![0], '=1+1')
  })

  it('writes a single empty cell so that it reads as a record', async () => {
    assert.equal(await written([{ a: null }, { a: '' }, { a: 'x' }], { columns: ['a'] }), 'a\r\n""\r\n""\r\nx\r\n')
  })

  it('refuses to resume a file with other columns', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-csv-'))
    try {
      const path = join(folder, 'x.csv')
      let position: string
      {
        await using sink = createCsvSink({ path, columns: ['a', 'b, "c"'] })
        await sink.open(undefined)
        position = await sink.flush()
      }
      await using same = createCsvSink({ path, columns: ['a', 'b, "c"'] })
      await same.open(position)
      await using other = createCsvSink({ path, columns: ['a', 'd'] })
      await assert.rejects(
        other.open(position),
        (error) => error instanceof ScrapeError && /columns/.test(error.message),
      )
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  it('keeps rows with many absent fields intact at the end of its buffer', async () => {
    const columns = Array.from({ length: 40 }, (_, n) => `c${n}`)
    const text = await written(Array(20_000).fill({}), { columns })
    assert.equal(text, `${columns.join(',')}\r\n${`${','.repeat(39)}\r\n`.repeat(20_000)}`)
  })

  it('reads only an item’s own properties', async () => {
    assert.equal(await written([{ a: 1 }], { columns: ['a', 'constructor'] }), 'a,constructor\r\n1,\r\n')
  })
})
