/** Whether a posting matches a search. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as z from 'zod'
import { parsePlaces } from '../read/location.ts'
import { isWanted, mayBeWanted, type Search, type Seen, searchArgs } from './search.ts'

const NOW = new Date('2026-03-10T12:00:00Z')
const searchFor = (search: Partial<Search>) => ({ ...z.object(searchArgs).parse({}), ...search })
const wanted = (posting: Seen, search: Partial<Search>) => isWanted(posting, searchFor(search), NOW)
const maybe = (posting: Seen, search: Partial<Search>) => mayBeWanted(posting, searchFor(search), NOW)

test('an empty search matches everything', () => {
  assert.ok(wanted({}, {}))
  assert.ok(wanted({ title: 'Engineer', locations: [], date_posted: null }, {}))
})

test('words are found in title and description, at the start of a word', () => {
  const posting = { title: 'Data Engineer', description_text: 'We use Kafka.' }
  assert.ok(wanted(posting, { search: 'data kafka' }))
  assert.ok(wanted(posting, { search: 'ENGIN' }))
  assert.ok(!wanted(posting, { search: 'data spark' }))
  assert.ok(!wanted(posting, { search: 'gineer' }))
  assert.ok(wanted({ title: 'Data Engineer' }, { search: 'spark' }), 'the description may still say it')
})

test('a country covers its cities, under any of its names', () => {
  const berlin = { locations: parsePlaces(['Berlin, DE']) }
  for (const location of ['Berlin', 'Germany', 'Deutschland', 'berlin, germany', 'DE'])
    assert.ok(wanted(berlin, { location }), location)
  for (const location of ['Munich', 'France', 'Boston, MA']) assert.ok(!wanted(berlin, { location }), location)
  assert.ok(wanted({ locations: parsePlaces(['Boston, Massachusetts']) }, { location: 'Boston, MA' }))
  assert.ok(wanted({ locations: parsePlaces(['Boston, Massachusetts']) }, { location: 'MA' }))
  assert.ok(wanted({}, { location: 'Berlin' }))
})

test('since counts days, and a date without a time covers its whole day', () => {
  assert.ok(wanted({ date_posted: '2026-03-09' }, { since: 1 }))
  assert.ok(!wanted({ date_posted: '2026-03-08' }, { since: 1 }))
  assert.ok(!wanted({ date_posted: '2026-03-09T11:00:00Z' }, { since: 1 }))
  assert.ok(wanted({ date_posted: null }, { since: 1 }))
})

test('remote work and employment type must match', () => {
  assert.ok(wanted({ workplace: 'remote' }, { remote: true }) && wanted({ is_remote: true }, { remote: true }))
  assert.ok(!wanted({ workplace: 'onsite' }, { remote: true }) && !wanted({ workplace: 'hybrid' }, { remote: true }))
  assert.ok(!wanted({ is_remote: true }, { remote: false }) && wanted({ workplace: null }, { remote: false }))
  assert.ok(wanted({ employment_type: 'full_or_part' }, { type: 'part_time' }))
  assert.ok(!wanted({ employment_type: 'internship' }, { type: 'full_time' }))
})

test('a posting that does not say matches neither remote nor a type; a list row still may', () => {
  const silent: Seen = { title: 'Cook', workplace: null, is_remote: null, employment_type: null }
  for (const search of [{ remote: true }, { type: 'contract' }] as const) {
    assert.ok(!wanted(silent, search) && !wanted({}, search), JSON.stringify(search))
    assert.ok(maybe(silent, search) && maybe({}, search), JSON.stringify(search))
  }
  assert.ok(
    !maybe({ workplace: 'onsite' }, { remote: true }) && !maybe({ employment_type: 'other' }, { type: 'contract' }),
  )
  assert.ok(wanted(silent, {}) && wanted(silent, { remote: false }))
})
