import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import * as z from 'zod'
import { ScrapeError } from '../core/errors.ts'
import { compileItemCheck, toItemRow } from './validate.ts'

const book = z.object({
  title: z.string(),
  price: z.number(),
  tags: z.array(z.object({ name: z.string() })).optional(),
  seenAt: z.date().optional(),
})

/** A schema without a library: it only requires a string field `id`. */
function plainSchema(validate: StandardSchemaV1['~standard']['validate']): StandardSchemaV1 {
  return { '~standard': { version: 1, vendor: 'test', validate } }
}

describe('compileItemCheck', () => {
  it('returns the schema’s output, without fields the schema does not know', () => {
    const result = compileItemCheck(book)({ price: 1.5, junk: true, title: 'A' })
    assert.deepEqual(result, { ok: true, value: { title: 'A', price: 1.5 } })
  })

  it('names every problem with its path and no more words than needed', () => {
    const result = compileItemCheck(book)({ title: null, price: '£5', tags: [{ name: 'x' }, { name: 7 }] })
    assert.deepEqual(result, {
      ok: false,
      problems: [
        'title: expected string, received null',
        'price: expected number, received string',
        'tags[1].name: expected string, received number',
      ],
    })
  })

  it('says `item` if the value as a whole is wrong', () => {
    assert.deepEqual(compileItemCheck(book)('text'), {
      ok: false,
      problems: ['item: expected object, received string'],
    })
    assert.deepEqual(compileItemCheck(z.array(z.string()))(['a']), {
      ok: false,
      problems: ['item: expected an object, received array'],
    })
  })

  it('accepts any Standard Schema', () => {
    const check = compileItemCheck(
      plainSchema((value) =>
        typeof (value as { id?: unknown }).id === 'string'
          ? { value }
          : { issues: [{ message: 'must be text', path: [{ key: 'id' }] }] },
      ),
    )
    assert.deepEqual(check({ id: 'x' }), { ok: true, value: { id: 'x' } })
    assert.deepEqual(check({ id: 1 }), { ok: false, problems: ['id: must be text'] })
  })

  it('refuses a schema that validates asynchronously, zod’s or another', () => {
    const isDefinitionError = (error: unknown) => error instanceof ScrapeError && error.code === 'E_DEFINITION'
    const slow = z.object({ a: z.string().refine(async () => true) })
    assert.throws(() => compileItemCheck(slow)({ a: 'x' }), isDefinitionError)
    const other = plainSchema(async (value) => ({ value }))
    assert.throws(() => compileItemCheck(other)({ a: 'x' }), isDefinitionError)
    const failing = plainSchema(() => Promise.reject(new Error('later')))
    assert.throws(() => compileItemCheck(failing)({ a: 'x' }), isDefinitionError)
  })

  it('passes through an error inside the schema', () => {
    const broken = z.object({ a: z.string().transform(() => JSON.parse('{')) })
    assert.throws(() => compileItemCheck(broken)({ a: 'x' }), SyntaxError)
  })
})

describe('toItemRow', () => {
  const byId = (item: object) => (item as { id?: string }).id

  it('writes the fields in schema order, further ones after them', () => {
    const row = toItemRow({ extra: 1, b: 2, id: 'x', a: 3 }, ['id', 'a', 'b'], byId)
    assert.deepEqual([row.key, row.json], ['x', '{"id":"x","a":3,"b":2,"extra":1}'])
  })

  it('leaves absent fields out', () => {
    assert.equal(toItemRow({ a: 1, c: 3 }, ['a', 'b', 'c'], byId).json, '{"a":1,"c":3}')
  })

  it('writes dates as ISO strings', () => {
    assert.equal(toItemRow({ at: new Date(0) }, ['at'], byId).json, '{"at":"1970-01-01T00:00:00.000Z"}')
  })

  it('identifies an item without a key by its content', () => {
    const one = toItemRow({ a: 1, b: 2 }, ['a', 'b'], () => undefined)
    const same = toItemRow({ b: 2, a: 1 }, ['a', 'b'], () => undefined)
    const other = toItemRow({ a: 1, b: 3 }, ['a', 'b'], () => undefined)
    assert.equal(one.key, same.key)
    assert.notEqual(one.key, other.key)
  })

  it('keeps long keys exactly, lone surrogates included', () => {
    const key = `https://x.test/${'é'.repeat(20)}\ud800“`
    assert.equal(toItemRow({ id: key }, ['id'], byId).key, key)
  })

  it('does not keep the page in memory that its key was cut from', () => {
    setFlagsFromString('--expose-gc')
    const gc = runInNewContext('gc') as () => void
    const keys: string[] = []
    gc()
    const before = process.memoryUsage().heapUsed
    for (let n = 0; n < 40; n++) {
      const page = `${n} `.padEnd(1_000_000, `some page ${n} `)
      keys.push(toItemRow({ id: page.slice(500_000, 500_040) }, ['id'], byId).key)
    }
    gc()
    const grownBytes = process.memoryUsage().heapUsed - before
    assert.ok(grownBytes < 10_000_000, `40 keys hold ${grownBytes} bytes`)
    assert.equal(keys.length, 40)
  })

  it('refuses values that cannot be written as JSON', () => {
    const isItemError = (error: unknown) => error instanceof ScrapeError && error.code === 'E_ITEM_INVALID'
    assert.throws(() => toItemRow({ n: 1n }, ['n'], byId), isItemError)
    const circular: Record<string, unknown> = {}
    circular.self = circular
    assert.throws(() => toItemRow(circular, ['self'], byId), isItemError)
    assert.throws(() => toItemRow(new Date(0), [], byId), isItemError)
  })
})
