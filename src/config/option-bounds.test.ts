import assert from 'node:assert/strict'
import { test } from 'node:test'
import { optionBounds } from './option-bounds.ts'
import { optionSpecs } from './option-table.ts'

test('every option has a default and says what it accepts', () => {
  for (const [name, spec] of optionSpecs) {
    const { accepts, default: usual } = optionBounds(name)
    assert.ok(usual.length > 0 && !/undefined|NaN|object/.test(usual), `${name}: ${usual}`)
    assert.ok(accepts.length > 0 && !/undefined|NaN|Invalid/.test(accepts), `${name}: ${accepts}`)
    if (spec.value === 'N') assert.match(accepts, /^(?:whole )?number, [\d,]+ to [\d,]+$/, name)
    if (spec.value === 'TIME') assert.match(accepts, /^duration, .* to /, name)
    if (spec.value === 'SIZE') assert.match(accepts, /^size, .* to /, name)
  }
})

test('writes numbers, durations, sizes and words as people do', () => {
  assert.deepEqual(optionBounds('concurrency'), { accepts: 'whole number, 1 to 4,096', default: '16' })
  assert.deepEqual(optionBounds('timeout'), { accepts: 'duration, 10 ms to 1 h', default: '30 s' })
  assert.deepEqual(optionBounds('fileMax'), { accepts: 'size, 1 B to 1 TiB', default: '1 GiB' })
  assert.deepEqual(optionBounds('failAt'), { accepts: 'percentage or share, 0% to 100%', default: '5%' })
  assert.deepEqual(optionBounds('identity'), { accepts: 'honest, browser or tls', default: 'honest' })
  assert.deepEqual(optionBounds('pages'), { accepts: 'whole number, 1 to 1,000,000,000', default: 'no limit' })
})
