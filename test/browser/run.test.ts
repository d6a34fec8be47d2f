/** A run whose browser dies during a handler, and one whose page never shows what it should. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { chromiumForTests } from '../services/chromium.ts'
import { sluice, temporaryFolder } from '../sluice.ts'
import { openSite } from './site.ts'

const scraper = (route: string, handler: string) => `
import { defineScraper } from 'sluice'
import * as z from 'zod'
export default defineScraper({
  name: 'faults',
  args: z.object({ base: z.url() }),
  item: z.object({ attempt: z.number() }),
  key: 'attempt',
  routes: { app: { match: '/app', ${route} } },
  start: ({ args, enqueue }) => enqueue('app', new URL('/app', args.base)),
  handlers: { async app({ page, emit, attempt }) { ${handler} } },
})
`

async function run(text: string, out: string, more: readonly string[] = []) {
  await using site = await openSite({ '/app': '<p>an app</p>' })
  const file = join(out, 'faults.ts')
  writeFileSync(file, text)
  const args = ['run', file, '--arg', `base=${site.url}`, '--rps', '0', '--out', out, '--json', ...more]
  return await sluice(args, { env: { SLUICE_CHROME: await chromiumForTests() } })
}

test('retries a task whose browser dies during its handler', async () => {
  using folder = temporaryFolder()
  const handler = `
    if (attempt === 1) {
      setTimeout(() => process.kill(page.browser().process().pid, 'SIGKILL'), 100)
      await page.waitForSelector('#never')
    }
    await emit({ attempt })`
  const { code, stdout, stderr } = await run(scraper(`fetch: 'browser'`, handler), folder.path)
  assert.equal(code, 0, stderr)
  const { pages, items } = JSON.parse(stdout)
  assert.deepEqual([pages.ok, pages.failed, items.new], [1, 0, 1], stdout)
})

test('saves a screenshot with a dead letter of a browser route', async () => {
  using folder = temporaryFolder()
  const route = `fetch: 'browser', browser: { waitFor: '#never' }`
  const { stdout, stderr } = await run(scraper(route, ''), folder.path, ['--timeout', '3s'])
  assert.equal(JSON.parse(stdout).pages.failed, 1, stderr)
  const names = readdirSync(folder.path, { recursive: true }) as string[]
  const picture = names.find((name) => /snapshots.*\.png$/.test(name))
  assert.ok(picture, names.join('\n'))
  assert.equal(readFileSync(join(folder.path, picture)).subarray(1, 4).toString(), 'PNG')
})
