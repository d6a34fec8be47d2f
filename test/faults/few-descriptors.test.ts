/** A process with few file descriptors works with fewer concurrent pages, says so in one line, and delivers everything. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startBooksSite } from '../site/books.ts'
import { temporaryFolder } from '../sluice.ts'

const SLUICE = fileURLToPath(new URL('../../bin/sluice', import.meta.url))
const PAGES = 300

test('loses nothing with 100 concurrent pages under a limit of 64 open files', { timeout: 240_000 }, async () => {
  await using site = await startBooksSite({ products: 20, delayMs: 20 })
  using folder = temporaryFolder()
  writeFileSync(
    join(folder.path, 'many.ts'),
    `import { defineScraper } from 'sluice'
     import * as z from 'zod'
     export default defineScraper({
       name: 'many', item: z.object({ url: z.string() }), key: 'url', routes: { page: {} },
       args: z.object({ site: z.url() }),
       start: ({ args, enqueue }) => enqueue('page', Array.from({ length: ${PAGES} }, (_, i) => new URL('catalogue/page-1.html?n=' + i, args.site))),
       handlers: { page: ({ url, emit }) => emit({ url: url.href }) },
     })`,
  )
  const command = `ulimit -n 64; exec "$SLUICE" run many.ts --arg "site=$SITE" --concurrency 100 --per-host 100 --rps 0 --out runs`
  const env = { ...process.env, NODE_TEST_CONTEXT: undefined, SLUICE, SITE: site.url }
  const child = spawn('sh', ['-c', command], { cwd: folder.path, env, stdio: ['ignore', 'ignore', 'pipe'] })
  const [code, said] = await Promise.all([new Promise((resolve) => child.once('exit', resolve)), text(child.stderr)])
  assert.equal(code, 0, said)
  assert.equal(said.match(/ulimit -n\)/g)?.length, 1, said)
  assert.match(said, /of 100 pages at once: this process may have 64 files and sockets open/)
  const lines = readFileSync(join(folder.path, 'runs/many/latest/items.jsonl'), 'utf8').trim().split('\n')
  assert.equal(new Set(lines).size, PAGES)
})
