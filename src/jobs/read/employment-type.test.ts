/** Employment types, as boards write them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseEmploymentType } from './employment-type.ts'

const CASES: Readonly<Record<string, readonly string[]>> = {
  full_time: [
    'Full-time',
    'FULL_TIME',
    'FullTime',
    'fulltime',
    'full time',
    'Vollzeit',
    'CDI',
    'CDI - Temps plein',
    'Indefinido',
    'tempo indeterminato',
    'heltid',
    'voltijds',
    '正社員',
    '全职',
    'Permanent',
    'SALARIED_FT',
    'Regular Full Time (Salary)',
    'fulltime_permanent',
    'pełny etat',
    'plný úvazek',
    'Festanstellung, Vollzeit',
  ],
  part_time: [
    'Part-time',
    'Teilzeit',
    'deltid',
    'Werkstudent',
    'working_student',
    'parttime_permanent',
    'HOURLY_PT',
    'Permanent part-time',
    'アルバイト',
    '兼职',
  ],
  contract: ['Contract', 'CONTRACTOR', 'Freelance', 'Contract to hire', '業務委託', 'B2B'],
  temporary: ['TEMPORARY', 'CDD', 'befristet', 'fulltime_fixed_term', 'Seasonal'],
  internship: [
    'Intern',
    'INTERN',
    'Internship',
    'Stage',
    'Alternance',
    'Praktikum',
    '实习',
    'インターン',
    'Full-time internship',
  ],
  volunteer: ['Volunteer', 'Ehrenamt'],
  per_diem: ['PER_DIEM', 'PRN', 'Casual'],
  full_or_part: ['full-or-part-time', 'Full-time or part-time', 'Vollzeit, Teilzeit', 'Vollzeit/Teilzeit'],
  other: ['OTHER'],
}

for (const [type, words] of Object.entries(CASES)) {
  test(`recognises ${type} in every language on the list`, () => {
    for (const word of words) assert.equal(parseEmploymentType(word), type, word)
  })
}

test('of several types, the most specific one wins', () => {
  assert.equal(parseEmploymentType(['FULL_TIME', 'INTERN']), 'internship')
  assert.equal(parseEmploymentType(['FULL_TIME', 'CONTRACTOR']), 'contract')
  assert.equal(parseEmploymentType(['FULL_TIME', 'PART_TIME']), 'full_or_part')
})

test('unknown words stay unknown', () => {
  for (const word of ['', 'banana', 'Contemporary art', 'n/a', null, undefined, []])
    assert.equal(parseEmploymentType(word), null)
  assert.equal(parseEmploymentType(7 as never), null)
})
