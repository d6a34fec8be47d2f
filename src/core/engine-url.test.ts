import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseEngineUrl } from './engine-url.ts'

test('reads the scheme in any case, and the file of sqlite: with and without //', () => {
  const rows: [string, Partial<ReturnType<typeof parseEngineUrl>>][] = [
    ['sqlite:', { engine: 'sqlite', path: undefined, url: 'sqlite:', isShared: false }],
    ['sqlite', { engine: 'sqlite', path: undefined, url: 'sqlite:' }],
    ['SQLITE:', { engine: 'sqlite', path: undefined, url: 'sqlite:' }],
    ['SQLite:Runs/x.db', { engine: 'sqlite', path: 'Runs/x.db', url: 'sqlite:Runs/x.db' }],
    ['sqlite:///data/x.db', { engine: 'sqlite', path: '/data/x.db' }],
    ['Memory:', { engine: 'memory', url: 'memory:', isShared: false, hasLedger: false }],
    ['POSTGRESQL://U@h/D', { engine: 'postgres', url: 'postgresql://U@h/D', isShared: true, hasLedger: false }],
    ['rediss://h:1/0', { engine: 'redis', isShared: true, hasLedger: true }],
    ['AMQPS://h/v', { engine: 'amqp', url: 'amqps://h/v', isShared: true, hasLedger: true }],
    ['mysql://h', { engine: undefined, scheme: 'mysql', isShared: false }],
    ['constructor:x', { engine: undefined, scheme: 'constructor' }],
    ['/data/files.db', { engine: undefined, scheme: undefined, url: '/data/files.db' }],
  ]
  for (const [text, wanted] of rows) {
    const found = parseEngineUrl(text)
    assert.deepEqual({ ...found, ...wanted }, found, text)
  }
})
