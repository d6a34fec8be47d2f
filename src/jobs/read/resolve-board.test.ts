/** URLs of boards, as people paste them and as pages link to them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resolveBoard } from './resolve-board.ts'
import { findBoards } from './resolve-board-in-page.ts'

const KNOWN: [address: string, source: string, board: string, more?: Record<string, string>][] = [
  ['https://boards.greenhouse.io/acme', 'greenhouse', 'acme'],
  ['https://job-boards.greenhouse.io/acme/jobs/4012345?gh_src=x', 'greenhouse', 'acme'],
  ['https://job-boards.eu.greenhouse.io/acme', 'greenhouse', 'acme'],
  ['https://boards.greenhouse.io/embed/job_board/js?for=acme', 'greenhouse', 'acme'],
  ['https://boards-api.greenhouse.io/v1/boards/acme/jobs?content=true', 'greenhouse', 'acme'],
  ['jobs.lever.co/acme/7d9a', 'lever', 'acme'],
  ['https://jobs.eu.lever.co/acme', 'lever', 'acme', { region: 'eu' }],
  ['https://api.lever.co/v0/postings/acme?mode=json', 'lever', 'acme'],
  ['https://jobs.ashbyhq.com/Acme.AI/', 'ashby', 'Acme.AI'],
  ['https://apply.workable.com/acme/j/0A1B2C/', 'workable', 'acme'],
  ['https://apply.workable.com/api/v1/widget/accounts/acme?details=true', 'workable', 'acme'],
  ['https://careers.smartrecruiters.com/AcmeInc', 'smartrecruiters', 'AcmeInc'],
  ['https://jobs.smartrecruiters.com/AcmeInc/743999-engineer', 'smartrecruiters', 'AcmeInc'],
  ['https://ats.rippling.com/acme/jobs', 'rippling', 'acme'],
  ['https://ats.rippling.com/en-GB/acme/jobs/1', 'rippling', 'acme'],
  ['https://acme.recruitee.com/o/engineer', 'recruitee', 'acme'],
  ['https://ACME.teamtailor.com/jobs', 'teamtailor', 'acme'],
  ['https://acme-co.breezy.hr/p/1-x', 'breezy', 'acme-co'],
  ['https://acme.bamboohr.com./careers', 'bamboohr', 'acme'],
  ['https://acme.jobs.personio.de/job/1', 'personio', 'acme'],
  ['https://acme.jobs.personio.com/', 'personio', 'acme', { site: 'https://acme.jobs.personio.com/' }],
  ['//acme.pinpointhq.com/en/postings/1', 'pinpoint', 'acme'],
  [
    'https://acme.wd5.myworkdayjobs.com/en-US/External_Careers/job/Berlin/Cook_R1',
    'workday',
    'acme',
    { instance: 'wd5', careers: 'External_Careers' },
  ],
  ['https://acme.wd103.myworkdayjobs.com/Jobs', 'workday', 'acme', { instance: 'wd103', careers: 'Jobs' }],
  [
    'https://acme.wd1.myworkdayjobs.com/wday/cxs/acme/Jobs/jobs',
    'workday',
    'acme',
    { instance: 'wd1', careers: 'Jobs' },
  ],
]

for (const [address, source, board, more] of KNOWN) {
  test(`${address} is a board of ${source}`, () => {
    assert.deepEqual(resolveBoard(address), { source, board, args: { board, ...more } })
  })
}

const UNKNOWN = [
  '',
  'not an address',
  'javascript:alert(1)',
  'ftp://boards.greenhouse.io/acme',
  'https://careers.acme.com/jobs',
  'https://boards.greenhouse.io/',
  'https://boards.greenhouse.io/embed/job_board',
  'https://boards.greenhouse.io.evil.test/acme',
  'https://evil.test/boards.greenhouse.io/acme',
  'https://boards.greenhouse.io/%2e%2e%2fetc',
  'https://boards.greenhouse.io/a%40evil.test',
  'https://jobs.lever.co/.hidden',
  `https://jobs.lever.co/${'a'.repeat(101)}`,
  'https://www.teamtailor.com/en/',
  'https://assets-cdn.breezy.hr/logo.png',
  'https://a.b.recruitee.com/',
  'https://teamtailor.com/',
  'https://bamboohr.com/careers',
  'https://acme.wd5.myworkdayjobs.com/',
  'https://acme.wd5.myworkdayjobs.com/en-US',
  'https://constructor/acme',
]

for (const address of UNKNOWN) {
  test(`"${address.slice(0, 60)}" is not a board`, () => assert.equal(resolveBoard(address), undefined))
}

test('finds boards in links, frames and scripts of a page, each once', () => {
  const html = `<a href="https://boards.greenhouse.io/acme/jobs/1">One</a> <a href="https://boards.greenhouse.io/acme/jobs/2">Two</a>
    <iframe src="//acme.recruitee.com/embed"></iframe>
    <script>var data = {"url":"https:\\/\\/jobs.lever.co\\/acme-eu\\/1","style":url(https://jobs.ashbyhq.com/acme)};</script>
    <a href="https://www.linkedin.com/company/acme">We are hiring</a><a href="/jobs">All</a>
    <script src="https://boards.greenhouse.io/embed/job_board/js?x=1&amp;for=acme"></script>`
  assert.deepEqual(
    findBoards(html, 'https://careers.acme.test/').map(({ source, board }) => `${source} ${board}`),
    ['greenhouse acme', 'recruitee acme', 'lever acme-eu', 'ashby acme'],
  )
})

test('the page itself may be the board', () => {
  assert.deepEqual(findBoards('<h1>Jobs</h1>', 'https://acme.breezy.hr/'), [
    { source: 'breezy', board: 'acme', args: { board: 'acme' } },
  ])
})

test('a page full of URLs takes only a moment and gives at most fifty boards', () => {
  const many = Array.from({ length: 50_000 }, (_, n) => `https://jobs.lever.co/acme${n}`).join(' ')
  assert.equal(findBoards(many).length, 50)
  assert.deepEqual(findBoards('//'.repeat(1_000_000)), [])
  assert.deepEqual(findBoards(`https://${'a.'.repeat(1_000_000)}`), [])
})
