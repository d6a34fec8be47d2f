/** What identifies a posting. */
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import { contentHash, jobHash, requisitionKey, requisitionOf } from './identity.ts'
import { parsePlaces } from './location.ts'
import { companyKey, titleKey } from './titles.ts'

const job = {
  company: 'Acme',
  title: 'Engineer',
  locations: parsePlaces(['Boston, MA']),
  workplace: null,
  remote_countries: [],
  employment_type: null,
}

test('the job hash is the SHA-256 of five lines', () => {
  const one = {
    ...job,
    company: 'Contoso GmbH',
    title: 'Sr. Data Engineer (m/w/d)',
    employment_type: 'full_time' as const,
  }
  const lines = 'v1\ncontoso\nsenior data engineer\nboston|MA|US\nfull_time'
  assert.equal(jobHash(one), hash('sha256', lines, 'hex'))
  const two = { ...job, locations: parsePlaces(['Boston, MA', 'Austin, TX']) }
  assert.equal(jobHash(two), hash('sha256', 'v1\nacme\nengineer\naustin|TX|US,boston|MA|US\n', 'hex'))
  const remote = { ...job, locations: [], workplace: 'remote' as const, remote_countries: ['US', 'DE'] }
  assert.equal(jobHash(remote), hash('sha256', 'v1\nacme\nengineer\nremote:DE,US\n', 'hex'))
})

test('the order of places does not affect the identity', () => {
  const there = jobHash({ ...job, locations: parsePlaces(['Boston, MA', 'Austin, TX']) })
  assert.equal(there, jobHash({ ...job, locations: parsePlaces(['Austin, TX', 'Boston, MA']) }))
})

test('company keys drop legal forms and nothing else', () => {
  const cases: readonly [string | null, string][] = [
    ['Acme, Inc.', 'acme'],
    ['Contoso GmbH & Co. KG', 'contoso'],
    ['Foo Co., Ltd.', 'foo'],
    ['Novo Nordisk A/S', 'novo nordisk'],
    ['Fabrikam S.A.', 'fabrikam'],
    ['ＡＣＭＥ Corp', 'acme'],
    ['Meta', 'meta'],
    ['MetaLab', 'metalab'],
    ['Company', 'company'],
    ['Procter & Gamble', 'procter gamble'],
    [null, ''],
    ['SAP SE', 'sap'],
    ['Foo Pty Ltd', 'foo'],
  ]
  for (const [name, key] of cases) assert.equal(companyKey(name), key, name ?? 'null')
})

test('title keys drop decoration and keep what distinguishes jobs', () => {
  const places = parsePlaces(['Boston, MA'])
  const cases: readonly [string, string][] = [
    ['Sr. Software Eng', 'senior software engineer'],
    ['Jr Mgr', 'junior manager'],
    ['Engineer III', 'engineer 3'],
    ['Data Engineer (m/w/d)', 'data engineer'],
    ['Data Engineer f/m/x', 'data engineer'],
    ['Data Engineer (all genders)', 'data engineer'],
    ['Entwickler:in', 'entwickler'],
    ['Engineer – Remote', 'engineer'],
    ['Engineer (Hybrid)', 'engineer'],
    ['Engineer - Boston', 'engineer'],
    ['Engineer, Boston, MA', 'engineer'],
    ['Engineer - Denver', 'engineer denver'],
    ['Engineer - R12345', 'engineer'],
    ['Engineer (Req #12345)', 'engineer'],
    ['Engineer JR-0012345', 'engineer'],
    ['Intern Summer 2026', 'intern summer 2026'],
    ['Mobile Engineer (iOS)', 'mobile engineer ios'],
    ['Mobile Engineer (Android)', 'mobile engineer android'],
    ['C++ Developer', 'c++ developer'],
    ['C# Developer', 'c# developer'],
    ['Senior Engineer', 'senior engineer'],
    ['Engineer 2', 'engineer 2'],
    ['A/D Converter Engineer', 'a d converter engineer'],
    ['Remote', 'remote'],
    ['Boston', 'boston'],
    ['', ''],
  ]
  for (const [title, key] of cases) assert.equal(titleKey(title, places), key, title)
})

test('placeholders are not requisitions, and there is no key without a company', () => {
  for (const text of ['See Opening ID', 'TBD', 'tba', 'N/A', '', ' ', null, undefined])
    assert.equal(requisitionOf(text), null)
  assert.equal(requisitionOf(4711), '4711')
  assert.equal(requisitionKey({ company: null, requisition_id: 'R1' }), null)
  assert.equal(
    requisitionKey({ company: 'Acme Inc', requisition_id: 'R1' }),
    requisitionKey({ company: 'ACME', requisition_id: 'r1' }),
  )
})

test('the content hash covers what a reader sees', () => {
  const content = {
    title: 'Engineer',
    locations: [],
    salary: null,
    employment_type: null,
    workplace: null,
    description_text: 'a b',
    apply_url: null,
  }
  assert.equal(contentHash(content), contentHash({ ...content, description_text: ' a \n b ' }))
  for (const change of [
    { title: 'x' },
    { description_text: 'c' },
    { apply_url: 'https://x.test/' },
    { workplace: 'remote' as const },
  ]) {
    assert.notEqual(contentHash(content), contentHash({ ...content, ...change }))
  }
})
