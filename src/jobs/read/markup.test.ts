/** JobPosting markup as found on careers pages. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { release, select } from '../../extract/html.ts'
import { mentionsJobPosting, readJobPostings, readListedUrls } from './markup.ts'
import type { RawPosting } from './posting.ts'

const PAGE = 'https://careers.acme.test/jobs/17?lang=en'

function read(html: string, url = PAGE): RawPosting[] {
  const $ = select(html, url)
  const postings = readJobPostings($, url)
  release($)
  return postings
}

const page = (block: string) => `<html><head><script type="application/ld+json">${block}</script></head></html>`
const one = (node: object) => read(page(JSON.stringify({ '@type': 'JobPosting', title: 'Cook', ...node })))[0]!

const WHOLE = {
  '@context': 'https://schema.org/',
  '@type': 'JobPosting',
  title: 'Senior Cook',
  description: '<p>Cook &amp; bake.</p>',
  identifier: { '@type': 'PropertyValue', name: 'Acme', value: 'R-17' },
  datePosted: '2026-10-01',
  validThrough: '2026-12-31T23:59',
  employmentType: ['FULL_TIME', 'PART_TIME'],
  hiringOrganization: {
    '@type': 'Organization',
    name: 'Acme GmbH',
    sameAs: 'https://acme.test',
    logo: { '@type': 'ImageObject', url: '/logo.png' },
  },
  jobLocation: [
    {
      '@type': 'Place',
      address: {
        streetAddress: 'Am Tor 1',
        addressLocality: 'Berlin',
        addressRegion: 'BE',
        addressCountry: { name: 'DE' },
      },
      geo: { latitude: '52.5', longitude: 13.4 },
    },
    { '@type': 'Place', name: 'Acme GmbH', address: 'Rome, Italy' },
  ],
  jobLocationType: 'TELECOMMUTE',
  applicantLocationRequirements: [{ '@type': 'Country', name: 'Germany' }, 'IT'],
  baseSalary: {
    '@type': 'MonetaryAmount',
    currency: 'EUR',
    value: { '@type': 'QuantitativeValue', minValue: 50000, maxValue: 60000, unitText: 'YEAR' },
  },
  industry: 'Food',
  occupationalCategory: '35-2014',
  directApply: true,
  totalJobOpenings: 2,
}

test('reads a complete posting', () => {
  assert.deepEqual(read(page(JSON.stringify(WHOLE))), [
    {
      source_job_id: '/jobs/17?lang=en',
      board_token: 'careers.acme.test',
      requisition_id: 'R-17',
      title: 'Senior Cook',
      company: 'Acme GmbH',
      company_url: 'https://acme.test/',
      company_logo: 'https://careers.acme.test/logo.png',
      locations: [
        { raw: 'Berlin, BE, DE', city: 'Berlin', region: 'BE', country: 'DE', lat: 52.5, lon: 13.4 },
        'Rome, Italy',
      ],
      workplace: 'TELECOMMUTE',
      remote_countries: ['Germany', 'IT'],
      employment_type: ['FULL_TIME', 'PART_TIME'],
      salary: { min: '50000', max: '60000', currency: 'EUR', interval: 'YEAR' },
      date_posted: '2026-10-01',
      valid_through: '2026-12-31T23:59',
      description_html: '<p>Cook &amp; bake.</p>',
      job_url: PAGE,
      department: undefined,
      industry: 'Food',
      function: '35-2014',
      language: undefined,
      raw: { directApply: true, totalJobOpenings: '2' },
    },
  ])
})

for (const [where, block] of [
  ['in an array', '[{"@type":"WebSite"},{"@type":"JobPosting","title":"Cook"}]'],
  ['in a graph', '{"@graph":[{"@type":["Thing","JobPosting"],"title":"Cook"}]}'],
  [
    'as the main entity of its page',
    '{"@type":"WebPage","mainEntity":{"@type":"http://schema.org/JobPosting","title":"Cook"}}',
  ],
  ['with capitalised names', '{"@type":"JobPosting","Title":"Cook"}'],
  ['behind raw line breaks and a comma too many', '{"@type":"JobPosting","title":"Cook","description":"a\nb",}'],
] as const) {
  test(`finds a posting ${where}`, () =>
    assert.deepEqual(
      read(page(block)).map(({ title }) => title),
      ['Cook'],
    ))
}

test('distinguishes the jobs of a list by their URLs, or else by their numbers', () => {
  const items = [
    { '@type': 'JobPosting', title: 'Cook', url: '/jobs/1' },
    { '@type': 'JobPosting', title: 'Baker', url: 'https://careers.acme.test/jobs/2' },
    { '@type': 'JobPosting', title: 'Waiter', identifier: 'W1' },
    { '@type': 'JobPosting', title: 'Waiter', identifier: 'W2', url: 'https://careers.acme.test/' },
  ]
  const list = { '@type': 'ItemList', itemListElement: items.map((item) => ({ '@type': 'ListItem', item })) }
  assert.deepEqual(
    read(page(JSON.stringify(list))).map((posting) => posting.source_job_id),
    ['/jobs/1', '/jobs/2', '/jobs/17?lang=en#W1', '/jobs/17?lang=en#W2'],
  )
})

test('a page is the same at every URL that leads to it', () => {
  const html = page(JSON.stringify({ '@type': 'JobPosting', title: 'Cook' }))
  const withLink = `<link rel="canonical" href="/jobs/17">${html}`
  assert.equal(read(withLink)[0]!.job_url, 'https://careers.acme.test/jobs/17')
  assert.equal(read(html, 'https://careers.acme.test/jobs/17?utm_source=x')[0]!.source_job_id, '/jobs/17')
  const wrong = `<link rel="canonical" href="https://careers.acme.test/">${html}`
  assert.equal(read(wrong)[0]!.job_url, PAGE)
})

test('follows lists that contain only URLs', () => {
  const list = {
    '@type': 'ItemList',
    itemListElement: [
      { '@type': 'ListItem', url: '/jobs/1' },
      { item: 'https://careers.acme.test/jobs/2' },
      { item: { '@id': '/jobs/3' } },
      '/jobs/1',
      7,
      { url: 'javascript:x' },
    ],
  }
  const $ = select(page(JSON.stringify(list)), PAGE)
  assert.deepEqual(
    readListedUrls($, PAGE),
    [1, 2, 3].map((id) => `https://careers.acme.test/jobs/${id}`),
  )
})

const amount = (value: unknown, more: object = {}) => ({ '@type': 'MonetaryAmount', currency: 'USD', value, ...more })
for (const [what, node, salary] of [
  [
    'a bare number',
    { baseSalary: amount(80000, { unitText: 'YEAR' }) },
    { min: '80000', max: '80000', currency: 'USD', interval: 'YEAR' },
  ],
  [
    'a number in text',
    { baseSalary: amount('25.50') },
    { min: '25.50', max: '25.50', currency: 'USD', interval: undefined },
  ],
  [
    'one value',
    { baseSalary: amount({ value: 40, unitText: 'HOUR' }, { unitText: 'YEAR' }) },
    { min: '40', max: '40', currency: 'USD', interval: 'HOUR' },
  ],
  [
    'only an upper bound',
    { baseSalary: amount({ maxValue: 90, minValue: 0 }) },
    { min: null, max: '90', currency: 'USD', interval: undefined },
  ],
  [
    'bounds outside',
    { baseSalary: { currency: 'USD', minValue: 1000, maxValue: 2000 } },
    { min: '1000', max: '2000', currency: 'USD', interval: undefined },
  ],
  [
    'a price',
    { baseSalary: { '@type': 'PriceSpecification', price: 500, priceCurrency: 'GBP', unitText: 'DAY' } },
    { min: '500', max: '500', currency: 'GBP', interval: 'DAY' },
  ],
  [
    'a number and a currency beside it',
    { baseSalary: 70000, salaryCurrency: 'CHF' },
    { min: '70000', max: '70000', currency: 'CHF', interval: undefined },
  ],
  [
    'a range in text',
    { baseSalary: '80000-100000', salaryCurrency: 'EUR' },
    { min: '80000', max: '100000', currency: 'EUR', interval: undefined, raw: '80000-100000' },
  ],
  ['words', { baseSalary: 'Â£20 – Â£25 an hour' }, '£20 – £25 an hour'],
  [
    'an estimate',
    { estimatedSalary: [amount({ minValue: 1, maxValue: 2 })] },
    { min: '1', max: '2', currency: 'USD', interval: undefined, isEstimate: true },
  ],
  ['zeros', { baseSalary: amount({ minValue: 0, maxValue: '0', value: 0 }) }, undefined],
  ['words without a sum', { baseSalary: 'competitive' }, undefined],
] as const) {
  test(`reads pay given as ${what}`, () => assert.deepEqual(one(node).salary, salary))
}

test('keeps a confidential employer confidential', () => {
  assert.equal(one({ hiringOrganization: { name: 'Confidential' } }).company, null)
  assert.equal(one({ hiringOrganization: 'Acme' }).company, 'Acme')
})

test('repairs text that was read in the wrong charset, and leaves correct text alone', () => {
  assert.equal(one({ title: 'CafÃ© chef â€“ â‚¬20' }).title, 'Café chef – €20')
  assert.equal(one({ title: 'Café à côté, Ä–Ö, Ã' }).title, 'Café à côté, Ä–Ö, Ã')
})

test('uses the sections if there is no description', () => {
  const { description_html } = one({ responsibilities: 'Cook.', skills: ['Knives'] })
  assert.equal(description_html, '<div>Cook.</div>\n<div>Knives</div>')
})

const MICRODATA = `<div itemscope itemtype="https://schema.org/JobPosting">
  <h1 itemprop="title">Baker</h1><meta itemprop="datePosted" content="2026-10-02">
  <span itemprop="hiringOrganization" itemscope itemtype="https://schema.org/Organization"><b itemprop="name">Acme</b>
    <img itemprop="logo" src="/l.png"></span>
  <div itemprop="jobLocation" itemscope itemtype="https://schema.org/Place"><span itemprop="address" itemscope>
    <span itemprop="addressLocality">Berlin</span> <span itemprop="addressCountry">DE</span></span></div>
  <span itemprop="employmentType">FULL_TIME</span>
  <span itemprop="baseSalary" itemscope><meta itemprop="currency" content="EUR"><span itemprop="value" itemscope>
    <meta itemprop="minValue" content="3000"><meta itemprop="unitText" content="MONTH"></span></span>
  <div itemprop="description"><p>Bake <b>bread</b>.</p></div></div>`

test('reads microdata if there is no JSON-LD', () => {
  const [posting] = read(MICRODATA)
  assert.equal(posting!.title, 'Baker')
  assert.equal(posting!.company, 'Acme')
  assert.equal(posting!.company_logo, 'https://careers.acme.test/l.png')
  assert.deepEqual(posting!.locations, [
    { raw: 'Berlin, DE', city: 'Berlin', region: undefined, country: 'DE', lat: undefined, lon: undefined },
  ])
  assert.deepEqual(posting!.salary, { min: '3000', max: null, currency: 'EUR', interval: 'MONTH' })
  assert.equal(posting!.date_posted, '2026-10-02')
  assert.equal(posting!.description_html, '<p>Bake <b>bread</b>.</p>')
})

test('recognises a page that claims a posting, readable or not', () => {
  assert.ok(mentionsJobPosting(page('{"@type" : "JobPosting", "title')))
  assert.ok(mentionsJobPosting(MICRODATA))
  assert.ok(!mentionsJobPosting('<p>Every JobPosting is welcome</p>'))
})

test('no markup can make it throw or hang', () => {
  let deep: unknown = { '@type': 'JobPosting', title: 'Deep' }
  for (let i = 0; i < 3000; i++) deep = { x: deep }
  const odd = [null, 7, [], [[]], {}, { '@value': { '@value': {} } }, 'x'.repeat(100_000)]
  const fields = Object.keys(WHOLE).filter((name) => name !== '@type' && name !== 'title')
  for (const value of odd) one(Object.fromEntries(fields.map((name) => [name, value])))
  assert.equal(read(page(JSON.stringify(deep))).length, 1)
  assert.deepEqual(read(page(`${'['.repeat(50_000)}`)), [])
  assert.equal(
    read(page(JSON.stringify(Array.from({ length: 5000 }, (_, i) => ({ ...WHOLE, url: `/${i}` }))))).length,
    1000,
  )
})
