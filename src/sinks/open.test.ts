import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ScrapeError } from '../core/errors.ts'
import { csv } from '../core/scraper.ts'
import type { SinkSetup } from './contract.ts'
import { openSinks } from './open.ts'

const setup: SinkSetup = { scraper: 'books', runId: 'r1', fields: ['a', 'b'], folder: '/runs/books/r1' }

async function opened(...specs: Parameters<typeof openSinks>[0]): Promise<[name: string, path: string][]> {
  const sinks = await openSinks(specs, setup)
  return sinks.map((sink) => [sink.name, (sink as unknown as { path: string }).path])
}

describe('openSinks', () => {
  it('puts formats in the run folder', async () => {
    assert.deepEqual(await opened('jsonl,csv', 'parquet'), [
      ['jsonl', '/runs/books/r1/items.jsonl'],
      ['csv', '/runs/books/r1/items.csv'],
      ['parquet', '/runs/books/r1/items.parquet'],
    ])
  })

  it('knows dual and json', async () => {
    assert.deepEqual(
      (await opened('dual')).map(([name]) => name),
      ['csv', 'jsonl'],
    )
    assert.deepEqual(
      (await opened('json')).map(([name]) => name),
      ['jsonl'],
    )
  })

  it('opens sink URLs at their own locations', async () => {
    assert.deepEqual(
      await opened('sqlite:/data/books.db', 'file:/data/a,b.csv', 'file:///data/c.parquet', 'file:/d.jsonl'),
      [
        ['sqlite:/data/books.db', '/data/books.db'],
        ['file:/data/a,b.csv', '/data/a,b.csv'],
        ['file:/data/c.parquet', '/data/c.parquet'],
        ['file:/d.jsonl', '/d.jsonl'],
      ],
    )
  })

  it('accepts the scraper’s own specs', async () => {
    assert.deepEqual(await opened(csv({ columns: ['b'] as never }), { kind: 'sqlite', path: '/x.db' }), [
      ['csv', '/runs/books/r1/items.csv'],
      ['sqlite:/x.db', '/x.db'],
    ])
  })

  it('creates one sink for an output named twice', async () => {
    assert.equal((await opened('dual,csv', 'json', 'file:/runs/books/r1/items.csv')).length, 2)
  })

  it('rejects all unknown specs at once, and lists the known ones', async () => {
    const isHelpful = (error: unknown) =>
      error instanceof ScrapeError &&
      error.code === 'E_OPTION' &&
      ['"xml"', '"file:/x.txt"', '"ftp://x/y.csv"', '"constructor"'].every((spec) => error.message.includes(spec)) &&
      ['jsonl', 'csv', 'parquet', 'dual', 'sqlite:'].every((known) => error.fix.includes(known))
    await assert.rejects(openSinks(['xml,csv', 'file:/x.txt', 'ftp://x/y.csv', 'constructor'], setup), isHelpful)
  })
})
