import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { firstNumber } from './number.ts'

const CASES: [string, number | undefined][] = [
  ['£51.77', 51.77],
  ['1,234.50', 1234.5],
  ['1.234,50 €', 1234.5],
  ['-3', -3],
  ['−3,5 °C', -3.5],
  ['-£3.20', -3.2],
  ['$ -4', -4],
  ['In stock (22 available)', 22],
  ['Page 2 of 50', 2],
  ['12,5', 12.5],
  ['12,50 EUR', 12.5],
  ['1,234', 1234],
  ['1.234', 1.234],
  ['0,123', 0.123],
  ['1.234.567', 1234567],
  ['1,234,567', 1234567],
  ['1,23,456.78', 123456.78],
  ['1\u00a0234,50 €', 1234.5],
  ['1\u202f234\u202f567', 1234567],
  ["CHF 1'234.50", 1234.5],
  ['5 200 ml', 5],
  ['12345,678', 12345.678],
  ['10-20', 10],
  ['A-3', 3],
  ['a - 3', 3],
  ['.5 mm', 0.5],
  ['v1.2.3', 1.2],
  ['Total: 5.', 5],
  ['5, 6', 5],
  ['1,2,3', 1],
  ['4.5/5', 4.5],
  ['99%', 99],
  ['£1,234.5', 1234.5],
  ['0', 0],
  ['007', 7],
  ['', undefined],
  ['sold out', undefined],
  [`1${'0'.repeat(400)}`, undefined],
]

for (const [text, number] of CASES) {
  test(`reads ${JSON.stringify(text.slice(0, 40))} as ${number}`, () => assert.equal(firstNumber(text), number))
}

test('reads back any price in English and German notation', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1e12 }), (cents) => {
      const price = cents / 100
      const options = { minimumFractionDigits: 2, maximumFractionDigits: 2 }
      assert.equal(firstNumber(`£${price.toLocaleString('en-GB', options)}`), price)
      assert.equal(firstNumber(`${price.toLocaleString('de-DE', options)} €`), price)
      assert.equal(firstNumber(`${price.toLocaleString('fr-FR', options)} €`), price)
    }),
  )
})
