import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { article, BLOCK_CASES, page } from './cases.test-kit.ts'
import { checkForBlock } from './check.ts'
import type { BlockEvidence, BlockVerdict } from './signals.ts'

const isBlocked = ({ class: cls }: BlockVerdict) => cls !== 'none' && cls !== 'gone'

for (const { name, class: cls, vendor, isSuspect, ...evidence } of BLOCK_CASES) {
  test(`calls it ${cls}: ${name}`, () => {
    const verdict = checkForBlock(evidence)
    assert.equal(verdict.class, cls, verdict.signal)
    if (vendor !== undefined) assert.equal(verdict.vendor, vendor, verdict.signal)
    assert.equal(verdict.isSuspect ?? false, isSuspect ?? false)
    if (isBlocked(verdict)) assert.notEqual(verdict.signal, '')
  })
}

test('distinguishes blocks from pages in the labelled sample', () => {
  const file = new URL('../../../test/data/block-cases.json', import.meta.url)
  const cases: (BlockEvidence & { name: string; blocked: boolean })[] = JSON.parse(readFileSync(file, 'utf8'))
  const wrong = cases.filter((one) => isBlocked(checkForBlock(one)) !== one.blocked).map(({ name }) => name)
  assert.deepEqual(wrong, [])
})

test('accepts real-world pages as pages', () => {
  const folder = new URL('../../../test/pages/', import.meta.url)
  const files = readdirSync(folder).filter((name) => name.endsWith('.html'))
  assert.ok(files.length > 40)
  const headers = { 'content-type': 'text/html', server: 'cloudflare' }
  for (const name of files) {
    const body = readFileSync(new URL(name, folder))
    assert.equal(checkForBlock({ url: `https://a.test/${name}`, status: 200, headers, body }).class, 'none', name)
  }
})

test('treats bytes like text, and header names in any case', () => {
  for (const one of BLOCK_CASES) {
    const headers = Object.fromEntries(Object.entries(one.headers).map(([name, value]) => [name.toUpperCase(), value]))
    assert.deepEqual(checkForBlock({ ...one, headers, body: Buffer.from(one.body) }), checkForBlock(one), one.name)
  }
})

test('looks at the first 64 kB only', () => {
  const late = `${article()}${' '.repeat(70_000)}<div id="px-captcha"></div>`
  assert.equal(checkForBlock({ url: 'https://a.test/', status: 403, headers: {}, body: late }).vendor, 'unknown')
})

test('is not slowed down by bodies designed to do so', () => {
  const bait = [
    '<title'.repeat(11_000),
    '<!--'.repeat(16_000),
    '<script>'.repeat(8_000),
    '<'.repeat(65_536),
    'error code '.repeat(6_000),
    'verify that '.repeat(5_500),
    'a '.repeat(32_000),
    `<title>${'access '.repeat(9_000)}`,
    'location'.repeat(8_000),
    ' '.repeat(65_536),
  ]
  const urls = ['https://a.test/', `https://www.linkedin.com/${'/punish?'.repeat(900)}`, 'no url at all', '']
  // An expression that backtracks would never finish these.
  for (const body of bait)
    for (const url of urls)
      for (const status of [200, 202, 403, 503]) {
        const verdict = checkForBlock({ url, status, headers: { 'content-type': 'text/html' }, body })
        if (status === 403) assert.notEqual(verdict.class, 'none')
      }
})

test('does not throw, whatever the input', () => {
  for (const status of [0, -1, 200, 999, 1e9, Number.NaN])
    for (const body of ['', '\0', '<', '</', '<title', '<script', '{', Buffer.from([0xff, 0xfe, 0])])
      for (const url of ['', '//', 'https://', 'data:,'])
        checkForBlock({ url, status, headers: { location: 'http://[', 'set-cookie': [], x: undefined }, body })
  assert.equal(checkForBlock({ url: '', status: 200, headers: {}, body: page('Jobs', 'Some') }).class, 'none')
})
