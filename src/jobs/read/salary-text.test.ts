/** Pay read from text: labelled and hostile cases. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parseSalaryText } from './salary-text.ts'

type Case = [string, [number | null, number | null, string, string | null] | null]

const casesIn = (name: string): Case[] =>
  JSON.parse(readFileSync(new URL(`../../../test/data/jobs/${name}`, import.meta.url), 'utf8'))

const shortOf = (text: string) => {
  const found = parseSalaryText(text)
  return found === null ? null : [found.min, found.max, found.currency, found.interval]
}

for (const name of ['salary-cases.json', 'salary-more-cases.json']) {
  test(`reads every pay in ${name}, and none where there is none`, () => {
    const cases = casesIn(name)
    assert.ok(cases.length > 20)
    const wrong = cases.filter(([text, pay]) => JSON.stringify(shortOf(text)) !== JSON.stringify(pay))
    assert.deepEqual(
      wrong.map(([text, pay]) => ({ text, pay, got: shortOf(text) })),
      [],
    )
  })
}

test('finds the single line about pay in a long description', () => {
  const about = 'We are a team of 40 with $50M in funding and 10,000 - 20,000 customers. '.repeat(40)
  const perks = ' Perks: $1,000 learning stipend, 401(k) match up to $5,000, relocation of $5,000 - $10,000.'
  const found = parseSalaryText(`${about}\nThe base salary range is $120,000 - $160,000 per year.\n${perks}`)
  assert.deepEqual([found?.min, found?.max, found?.interval], [120_000, 160_000, 'year'])
  assert.equal(found?.raw, '$120,000 - $160,000')
  assert.equal(parseSalaryText(about + perks), null)
})

test('distinguishes kr and ¥ by the country of the job', () => {
  const currency = (text: string, country: string) => parseSalaryText(text, { country })?.currency
  assert.equal(currency('45 000 kr per month', 'NO'), 'NOK')
  assert.equal(currency('45 000 kr per month', 'DK'), 'DKK')
  assert.equal(currency('45 000 kr per month', 'SE'), 'SEK')
  assert.equal(currency('¥300,000 per year', 'CN'), 'CNY')
  assert.equal(currency('¥6,000,000 per year', 'JP'), 'JPY')
})

test('a pay field needs no further evidence', () => {
  assert.equal(parseSalaryText('Acme Corporation, Boston: $5,000, start in May'), null)
  const found = parseSalaryText('Acme Corporation, Boston: $5,000, start in May', { isPayField: true })
  assert.deepEqual([found?.min, found?.interval], [5000, null])
})
