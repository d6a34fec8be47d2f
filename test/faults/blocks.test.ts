/** A site that blocks a run half-way and then lets it in again: nothing is lost, and the site is left alone during the block. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { it } from 'node:test'
import { sluice, temporaryFolder } from '../sluice.ts'

const PAGES = 120
const GOOD_BEFORE = 40
const SPELL_MS = 3000
const CAPTCHA =
  '<html><head><title>Just a moment...</title></head><body><script>window._cf_chl_opt={}</script></body></html>'

const SCRAPER = `
import { defineScraper } from 'sluice'
import * as z from 'zod'
export default defineScraper({
  name: 'spell',
  args: z.object({ base: z.url() }),
  item: z.object({ path: z.string() }),
  key: 'path',
  routes: { page: { match: '/page/:n' } },
  start: async ({ args, enqueue }) => {
    for (let n = 0; n < ${PAGES}; n++) await enqueue('page', new URL('/page/' + n, args.base))
  },
  handlers: { page: ({ url, emit }) => emit({ path: url.pathname }) },
})
`

/** Fine for a while, then a CAPTCHA with status 200 for a few seconds, then fine again. */
async function openSpellSite() {
  const stats = { good: 0, blocked: 0 }
  let spellUntilMs = 0
  const server = createServer((request, response) => {
    if (stats.good === GOOD_BEFORE && spellUntilMs === 0) spellUntilMs = Date.now() + SPELL_MS
    const isBlocked = Date.now() < spellUntilMs
    stats[isBlocked ? 'blocked' : 'good']++
    response.setHeader('content-type', 'text/html')
    response.end(isBlocked ? CAPTCHA : `<title>${request.url}</title><p>A page about something.</p>`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, stats, [Symbol.asyncDispose]: () => new Promise<void>((resolve) => void server.close(() => resolve())) }
}

it('waits out a spell of CAPTCHAs: every item is there, no tries run out, and few requests are made in the meantime', async () => {
  await using site = await openSpellSite()
  using folder = temporaryFolder()
  const file = join(folder.path, 'spell.ts')
  writeFileSync(file, SCRAPER)
  const manners = ['--robots', 'ignore', '--rps', '200', '--allow-private']
  const args = ['run', file, '--arg', `base=${site.url}`, ...manners, '--out', folder.path, '--json']
  const { code, stdout, stderr } = await sluice(args)
  assert.equal(code, 0, stdout + stderr)
  const { items, pages } = JSON.parse(stdout)
  assert.deepEqual([items.new, pages.dead], [PAGES, 0])
  assert.ok(site.stats.blocked >= 2 && site.stats.blocked <= 40, `${site.stats.blocked} requests were turned away`)
})
