/** On-site, remote or hybrid. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { workplaceOf } from './workplace.ts'

test('a structured value takes precedence over the place, and the place over the title', () => {
  assert.equal(workplaceOf({ field: 'OnSite', isRemote: true, locations: ['Remote'], title: 'Hybrid' }), 'onsite')
  assert.equal(workplaceOf({ field: 'unspecified', isRemote: true, locations: ['Boston'] }), 'remote')
  assert.equal(workplaceOf({ isRemote: false, locations: ['Boston (Hybrid)'], title: 'Remote Engineer' }), 'hybrid')
  assert.equal(workplaceOf({ locations: ['Boston'], title: 'Engineer - Remote' }), 'remote')
})

test('without evidence there is no answer', () => {
  assert.equal(workplaceOf({}), null)
  assert.equal(workplaceOf({ isRemote: false, locations: ['Boston, MA'], title: 'Engineer' }), null)
  assert.equal(workplaceOf({ field: 'none', locations: ['Remoteville'] }), null)
  assert.equal(workplaceOf({ locations: ['No remote'] }), null)
})

test('recognises the words that boards use', () => {
  const words: readonly [string, string | null][] = [
    ['TELECOMMUTE', 'remote'],
    ['fully', 'remote'],
    ['Remote', 'remote'],
    ['WFH', 'remote'],
    ['1', 'remote'],
    ['hybrid', 'hybrid'],
    ['2', 'hybrid'],
    ['on-site', 'onsite'],
    ['on_site', 'onsite'],
    ['0', 'onsite'],
    ['Remote or hybrid', 'hybrid'],
    ['Home Office', 'remote'],
    ['In-office', 'onsite'],
    ['télétravail', 'remote'],
  ]
  for (const [field, expected] of words) assert.equal(workplaceOf({ field }), expected, field)
})
