/** Texts designed to hang a parser: each must be parsed in time proportional to its length. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cpuMs } from '../../../test/cpu-time.ts'
import { isSameJob } from '../match/cluster.ts'
import { parsePostedDate } from './dates.ts'
import { parsePlaces } from './location.ts'
import { structuredSalary } from './salary.ts'
import { titleKey } from './titles.ts'
import { toPosting } from './to-posting.ts'

const CHARS = 65_536
const NOW = new Date('2026-03-10T12:00:00Z')
const PIECES = [
  '$1 ',
  '$1-',
  '1,',
  '1 000 ',
  '$',
  '(',
  ' - ',
  ',',
  '&lt;',
  '<',
  '<a ',
  '<p>',
  'm/w/',
  '/',
  'R1',
  '万1',
  'sr ',
  'remote or ',
  'insurance of ',
  '$1 per year ',
  'A-A-',
  '|',
  '1 day ',
  '🙂',
  'in ',
  '#1',
  'customers pay ',
  'not remote ',
  'greater ',
  'area ',
  '&amp;',
  '<!--',
  '<li>',
  '\u00a0',
  '\n',
]

function everything(text: string): void {
  const salary = { min: text, max: text, currency: text, interval: text, raw: text }
  const raw = {
    source_job_id: text,
    board_token: text,
    title: text,
    company: text,
    locations: [text, { raw: text, city: text, region: text, country: text }],
    job_url: text,
  }
  toPosting(
    'jsonld',
    {
      ...raw,
      workplace: text,
      employment_type: text,
      salary: text,
      date_posted: text,
      description_html: text,
      apply_url: text,
      raw: { text },
    },
    { now: NOW },
  )
  structuredSalary(salary)
  parsePlaces([text])
  parsePostedDate(text, NOW)
  titleKey(text)
  isSameJob(
    { title: text, company: text, location: text, job_type: text, description: text },
    { title: `${text}x`, company: text, location: text, job_type: text, description: `${text} y` },
  )
}

test('parses texts designed to hang it in linear time', () => {
  for (const piece of PIECES) {
    const text = piece.repeat(Math.ceil(CHARS / piece.length))
    for (const hostile of [text, `$1${text}x`]) {
      const tookMs = cpuMs(() => everything(hostile))
      // Generous: linear work on these takes a tenth of it, a bad pattern takes minutes.
      assert.ok(tookMs < 2500, `${JSON.stringify(piece)} took ${Math.round(tookMs)} ms`)
    }
  }
})
