import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FrontierStats } from '../frontier/contract.ts'
import { startRecord, updateRecord } from './run-record.ts'

const given = { runId: '20261116_050000_abcd', scraper: 'books', args: {}, source: 'books', frontier: 'sqlite:' }
const base = { fieldFill: {}, cpuMs: 0, durationMs: 0, rssBytesMax: 0, errors: [] }
const measured = { fieldFill: {}, latencyMs: { p50: 0, p95: 0 }, rssBytesMax: 0, cpuMs: 0, errors: [] }

test('keeps the record of a finished run of version 0.1, whose queue has no counters', () => {
  const record = startRecord({ previous: undefined, ...given, nowMs: 0 })
  const errors = [{ code: 'E_SERVER', class: 'server', count: 2, example: 'https://shop.example/7' }]
  const old = { items: { new: 20, same: 3, changed: 1, invalid: 2 }, fieldFill: { title: 1 }, bytes: 4096, errors }
  Object.assign(record, structuredClone(old))
  record.pages.retried = 5
  const stats = { completed: 20, failed: 2, dead: 1, remaining: 0, items: 20, counts: {} } as unknown as FrontierStats
  updateRecord(record, base, stats, measured, 1000)
  const { items, fieldFill, bytes, pages } = record
  assert.deepEqual({ items, fieldFill, bytes, errors: record.errors }, old)
  assert.deepEqual(pages, { ok: 20, failed: 2, retried: 5, postponed: 0, remaining: 0, dead: 1 })
})
