/** `sluice try` on a page whose files are browser downloads. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openSite, status } from '../../test/browser/site.ts'
import { chromiumForTests } from '../../test/services/chromium.ts'
import { sluice, temporaryFolder } from '../../test/sluice.ts'

const PAGE = `<a id="made" download="made.csv">made</a> <a id="served" href="/served.csv">served</a>
<script>document.querySelector('#made').href = URL.createObjectURL(new Blob(['a,b']))</script>`

const SCRAPER = `
import { defineScraper } from 'sluice'
import * as z from 'zod'
export default defineScraper({
  name: 'loads',
  item: z.object({ n: z.number() }),
  key: 'n',
  routes: { app: { match: '/app', fetch: 'browser' } },
  start: () => {},
  handlers: {
    async app({ page, file }) {
      await page.click('#made')
      await page.click('#served')
      await file('/ordered.csv')
    },
  },
})
`

test('try lists browser downloads beside the files that the handler requests', async () => {
  using folder = temporaryFolder()
  const attachment = { 'content-type': 'text/csv', 'content-disposition': 'attachment; filename=served.csv' }
  await using site = await openSite({ '/app': PAGE, '/served.csv': status(200, attachment, 'c,d') })
  const file = join(folder.path, 'loads.ts')
  writeFileSync(file, SCRAPER)
  const env = { SLUICE_CHROME: await chromiumForTests() }
  const { code, stdout, stderr } = await sluice(['try', file, `${site.url}/app`, '--json'], { env })
  assert.equal(code, 0, stderr + stdout)
  const { files, links } = JSON.parse(stdout)
  assert.deepEqual(links, [])
  assert.deepEqual(
    files.sort((a: { name: string | null }, b: { name: string | null }) => ((a.name ?? '') < (b.name ?? '') ? -1 : 1)),
    [
      { name: null, url: `${site.url}/ordered.csv` },
      { name: 'made.csv', bytes: 3 },
      { name: 'served.csv', url: `${site.url}/served.csv` },
    ],
  )
})
