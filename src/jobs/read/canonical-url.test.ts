/** One canonical spelling of a posting's URL. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canonicalUrl } from './canonical-url.ts'

const CASES: readonly [string, string | null][] = [
  [
    'HTTPS://Boards.Greenhouse.io:443/acme/jobs/1?utm_source=x&gh_src=abc#app',
    'https://boards.greenhouse.io/acme/jobs/1',
  ],
  ['https://acme.test/jobs/17?gh_jid=17', 'https://acme.test/jobs/17'],
  ['https://acme.test/careers?gh_jid=17', 'https://acme.test/careers?gh_jid=17'],
  ['https://jobs.lever.co/acme/1?lever-source=LinkedIn', 'https://jobs.lever.co/acme/1'],
  [
    'https://www.linkedin.com/jobs/view/9?position=3&pageNum=0&refId=a&trackingId=b&trk=c',
    'https://www.linkedin.com/jobs/view/9',
  ],
  [
    'https://www.linkedin.com/jobs/search?currentJobId=9&position=1',
    'https://www.linkedin.com/jobs/search?currentJobId=9',
  ],
  [
    'https://de.indeed.com/viewjob?jk=0123456789abcdef&from=serp&vjs=3',
    'https://de.indeed.com/viewjob?jk=0123456789abcdef',
  ],
  ['https://acme.test/apply?position=17', 'https://acme.test/apply?position=17'],
  ['mailto:jobs@acme.test', null],
  ['not a url', null],
  ['', null],
]

test('drops parameters that identify the visit and keeps those that identify the job', () => {
  for (const [url, expected] of CASES) assert.equal(canonicalUrl(url), expected, url)
})
