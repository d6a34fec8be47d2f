/** What becomes known about items over many runs, on both databases. */
import assert from 'node:assert/strict'
import { Bench, onBothDatabases } from '../../../test/history.ts'

const two = [
  { url: '/1', price: 10 },
  { url: '/2', price: 20 },
]

onBothDatabases('items', (check) => {
  check('a first run reports nothing; later ones report what is new, changed and gone', async (db) => {
    await using bench = new Bench(db)
    await bench.complete('r1', two)
    assert.deepEqual(bench.told(), [])
    await bench.complete('r2', [
      { url: '/1', price: 12 },
      { url: '/3', price: 30 },
    ])
    assert.deepEqual(bench.told().sort(), ['changed /1', 'gone /2', 'new /3'])
    await bench.complete('r3', [...two, { url: '/3', price: 30 }])
    const back = bench.events.find(({ data }) => data['key'] === '/2')!
    assert.deepEqual([back.type, back.data['isBack']], ['item.new', true])
    const { entity, changes, fields } = await bench.history.of('books', '/1')
    assert.deepEqual([entity.status, entity.timesSeen, entity.item['price']], ['active', 3, 10])
    assert.deepEqual(
      changes.map(({ kind, fields: changed }) => [kind, changed]),
      [
        ['new', []],
        ['changed', [{ field: 'price', before: 10, after: 12 }]],
        ['changed', [{ field: 'price', before: 12, after: 10 }]],
      ],
    )
    assert.deepEqual(
      fields['price']!.map(({ value }) => value),
      [10, 12, 10],
    )
    assert.deepEqual(await bench.kinds('/2'), ['new', 'gone', 'back'])
  })

  check('the time of reading and the order of fields do not count as a change', async (db) => {
    await using bench = new Bench(db)
    await bench.complete('r1', [{ url: '/1', price: 1, tags: { a: 1, b: 2 }, scraped_at: '2026-11-01T00:00:00Z' }])
    await bench.complete('r2', [{ scraped_at: '2026-11-02T00:00:00Z', tags: { b: 2, a: 1 }, price: 1, url: '/1' }])
    assert.deepEqual(bench.told(), [])
    assert.deepEqual(await bench.kinds('/1'), ['new'])
    assert.equal((await bench.history.of('books', '/1')).entity.timesSeen, 2)
  })

  check('a run that failed, was cut short or found too little marks nothing as gone', async (db) => {
    await using bench = new Bench(db)
    const ten = Array.from({ length: 10 }, (_, i) => ({ url: `/${i}` }))
    await bench.complete('r1', ten)
    await bench.complete('r2', ten.slice(0, 8), { gap: '1 pages failed' })
    bench
      .run('r3')
      .add(...ten.slice(0, 6))
      .end(bench.nowMs + 1000, { isFinished: false })
    await bench.look()
    await bench.complete('r4', ten.slice(0, 4))
    await bench.complete('r5', [])
    assert.deepEqual(bench.told(), [])
    await bench.complete('r6', ten.slice(0, 9))
    assert.deepEqual(bench.told(), ['gone /9'])
  })

  check('a shop that lost most of its items is believed on the third run', async (db) => {
    await using bench = new Bench(db)
    const ten = Array.from({ length: 10 }, (_, i) => ({ url: `/${i}` }))
    await bench.complete('r1', ten)
    for (const id of ['r2', 'r3']) await bench.complete(id, ten.slice(0, 4))
    assert.deepEqual(bench.told(), [])
    await bench.complete('r4', ten.slice(0, 4))
    assert.equal(bench.told().length, 6)
  })

  check('a run over another part of the site says nothing about the rest', async (db) => {
    await using bench = new Bench(db)
    await bench.complete('r1', two)
    await bench.complete('r2', [two[0]!, { url: '/9' }], { scope: 'bbbb' })
    assert.deepEqual(bench.told(), [], 'its first run is no news either')
    await bench.complete('r3', [{ url: '/2', price: 20 }])
    assert.deepEqual(bench.told(), ['gone /1'], 'the other part saw it before, not since')
    await bench.complete('r4', [two[0]!, { url: '/9' }], { scope: 'bbbb' })
    assert.deepEqual(bench.told(), ['new /1'])
    await bench.complete('r5', [{ url: '/2', price: 20 }])
    assert.deepEqual(bench.told(), [], 'it belongs to the part that shows it')
  })

  check('fields missing from runs with other arguments have not changed', async (db) => {
    await using bench = new Bench(db)
    const full = [
      { url: '/1', price: 10, description: 'long', tags: { a: 1, b: 2 } },
      { url: '/2', price: 20, description: 'longer', tags: null },
    ]
    const listed = (price: number) => [
      { url: '/1', price, description: null },
      { url: '/2', price: 20, stars: 3 },
    ]
    await bench.complete('r1', full)
    await bench.complete('r2', listed(10), { scope: 'list' })
    await bench.complete('r3', full)
    await bench.complete('r4', listed(10), { scope: 'list' })
    assert.deepEqual(bench.told(), [])
    await bench.complete('r5', listed(12), { scope: 'list' })
    const [changed, ...others] = bench.events.splice(0)
    assert.deepEqual([changed!.data['changed'], others], [['price'], []])
    assert.equal((changed!.data['item'] as { description: string }).description, 'long')
    await bench.complete('r6', [{ ...full[0]!, price: 12, description: null }, full[1]!])
    assert.deepEqual(
      bench.events.splice(0).map(({ data }) => [data['changed'], data['before'], data['after']]),
      [[['description'], { description: 'long' }, { description: null }]],
      'who showed a field before says that it is empty',
    )
    const { entity } = await bench.history.of('books', '/2')
    assert.deepEqual([entity.item['stars'], entity.timesSeen], [3, 6])
  })

  check('a value shown differently for two sets of arguments changes once, not with every run', async (db) => {
    await using bench = new Bench(db)
    const shown = (title: string) => [{ url: '/1', title }]
    await bench.complete('r1', shown('A long title'))
    await bench.complete('r2', shown('A long…'), { scope: 'list' })
    assert.deepEqual(bench.told(), ['changed /1'])
    for (const id of ['r3', 'r5']) {
      await bench.complete(id, shown('A long title'))
      await bench.complete(`${id}b`, shown('A long…'), { scope: 'list' })
    }
    assert.deepEqual(bench.told(), [])
  })

  check('reports a field that a scraper adds once, and not as a change of its items', async (db) => {
    await using bench = new Bench(db)
    const shown = (more: object, price = 20) => [
      { url: '/1', price: 10, ...more },
      { url: '/2', price, ...more },
    ]
    const old = { fields: ['url', 'price', 'stock'] }
    const now = { fields: ['url', 'price', 'stock', 'note'] }
    await bench.complete('r1', shown({}), old)
    await bench.complete('r2', shown({ note: 'n1' }, 25), now)
    assert.deepEqual(
      bench.events.map(({ type, data }) => [type, data['changed'], data['after']]),
      [
        ['item.changed', ['price'], { price: 25 }],
        ['run.schema_changed', undefined, undefined],
      ],
    )
    assert.deepEqual(bench.events.splice(0).at(-1)!.data, {
      scraper: 'books',
      runId: 'r2',
      added: ['note'],
      removed: [],
    })
    assert.deepEqual(await bench.kinds('/1'), ['new'])
    assert.equal((await bench.history.of('books', '/1')).entity.item['note'], 'n1', 'it is known all the same')
    await bench.complete('r3', shown({ note: 'n2' }, 25), now)
    assert.deepEqual(bench.told(), ['changed /1', 'changed /2'], 'from now on it is a field like any other')
    await bench.complete('r4', shown({ note: 'n2', stock: 3 }, 25), now)
    assert.deepEqual(bench.told(), ['changed /1', 'changed /2'], 'the schema had this one before any item did')
    await bench.complete('r5', shown({ stock: 3 }, 25), old)
    assert.deepEqual(bench.told(), ['run.schema_changed + -note'])
    assert.deepEqual(await bench.kinds('/1'), ['new', 'changed', 'changed'])
    await bench.complete('r6', shown({ stock: 3, note: 'n2' }, 25), now)
    assert.deepEqual(bench.told(), ['run.schema_changed +note -'])
  })

  check('without a schema, a field that no item ever had counts as added by the scraper', async (db) => {
    await using bench = new Bench(db)
    await bench.complete('r1', two)
    const run = bench.run('r2').add(...two.map((book) => ({ ...book, note: 'n1' })))
    await bench.look()
    run.add({ url: '/3', price: 30, more: 1 }).end(bench.nowMs + 1000)
    await bench.look()
    assert.deepEqual(bench.told(), ['new /3', 'run.schema_changed +more,note -'], 'one event, however many batches')
    run.goOn().end(bench.nowMs + 2000)
    await bench.look()
    const [again] = bench.events
    assert.equal(again?.dedupe ?? 'run.schema_changed:r2', 'run.schema_changed:r2', 'a resumed run tells the same')
  })

  check('an item that was absent when the field was added has not changed either', async (db) => {
    await using bench = new Bench(db)
    await bench.complete('r1', two)
    await bench.complete('r2', [{ ...two[0]!, note: 'n' }], { gap: '1 pages failed' })
    await bench.complete(
      'r3',
      two.map((book) => ({ ...book, note: 'n' })),
    )
    assert.deepEqual(bench.told(), ['run.schema_changed +note -'])
  })

  check('an item missed once stays if two complete runs are required', async (db) => {
    await using bench = new Bench(db, undefined, { missedMax: 2 })
    await bench.complete('r1', two)
    await bench.complete('r2', two.slice(1))
    await bench.complete('r3', two)
    await bench.complete('r4', two.slice(1))
    assert.deepEqual(bench.told(), [])
    await bench.complete('r5', two.slice(1))
    assert.deepEqual(bench.told(), ['gone /1'])
  })

  check('an older run that is read late does not revert values', async (db) => {
    await using bench = new Bench(db)
    const late = bench.run('r1').add({ url: '/1', price: 1 })
    late.isSettled = true
    await bench.complete('r2', [{ url: '/1', price: 2 }])
    late.isSettled = false
    late.end(late.startedAtMs + 1000)
    await bench.look()
    const { entity, changes } = await bench.history.of('books', '/1')
    assert.deepEqual([entity.item['price'], entity.timesSeen, changes.length], [2, 2, 1])
  })

  check('items are listed by scraper, text and page', async (db) => {
    await using bench = new Bench(db)
    const many = Array.from({ length: 25 }, (_, i) => ({ url: `/${10 + i}`, title: i === 7 ? '100%_Déjà Vu' : 'x' }))
    await bench.complete('r1', many)
    await bench.complete('r2', many.slice(1))
    const first = await bench.history.entities({ limit: 10 })
    const second = await bench.history.entities({ limit: 10, after: first.next })
    const third = await bench.history.entities({ limit: 10, after: second.next })
    assert.deepEqual(
      [first, second, third].map(({ entities }) => entities.length),
      [10, 10, 5],
    )
    assert.equal(third.next, undefined)
    const keys = async (filter: object) =>
      (await bench.history.entities({ limit: 10, ...filter })).entities.map(({ key }) => key)
    assert.deepEqual(await keys({ status: 'gone' }), ['/10'])
    assert.deepEqual(await keys({ q: '100%_d', scraper: 'books' }), ['/17'])
    assert.deepEqual(await keys({ q: '%' }), ['/17'])
    assert.deepEqual(await keys({ scraper: 'others' }), [])
    await assert.rejects(bench.history.of('books', 'nobody'), /no item "nobody"/)
  })

  check('odd keys and values are kept as they are, or left out', async (db) => {
    await using bench = new Bench(db)
    const long = `/${'x'.repeat(5000)}`
    const run = bench.run('r1').add({ url: 'a\0b', note: '\0\ud800' }, { url: long })
    run.lines.push({ key: 'broken', json: '{"url":', position: '3' }, { key: 'list', json: '[1]', position: '4' })
    run.lines.push({ key: undefined, json: '{"no":"key"}', position: '5' })
    run.end(bench.nowMs + 1000)
    await bench.look()
    assert.deepEqual(bench.warnings, [])
    assert.equal((await bench.history.of('books', 'a\0b')).entity.item['note'], '\0\ud800')
    assert.equal((await bench.history.of('books', long)).entity.item['url'], long)
    assert.equal((await bench.history.entities({ limit: 10 })).entities.length, 2)
  })
})
