import assert from 'node:assert/strict'
import { test } from 'node:test'
import { temporaryFolder } from '../../test/sluice.ts'
import { RunFolder } from './run-folder.ts'
import { startRecord } from './run-record.ts'

test('keeps the names of a record’s fields, even after one that sounds like a secret', () => {
  using place = temporaryFolder()
  const folder = RunFolder.create(place.path, 'shops', Date.now())
  const given = { runId: folder.runId, scraper: 'shops', source: 'shops', frontier: 'sqlite:', nowMs: Date.now() }
  folder.writeRecord(
    startRecord({ previous: undefined, ...given, args: { password: 'hunter22' }, fields: ['pin', 'city'] }),
  )
  const { fields, args } = folder.readRecord()!
  assert.deepEqual([fields, args], [['pin', 'city'], { password: '***' }])
})
