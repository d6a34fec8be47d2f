/**
 * One rule for all commands: a private address that was typed is fetched; a name that resolves to one needs `--allow-address`.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { sluice, temporaryFolder } from './sluice.ts'

const env = { NODE_OPTIONS: `--import=${new URL('./resolver.ts', import.meta.url).href}` }

const SCRAPER = `
import { defineScraper } from 'sluice'
import * as z from 'zod'
export default defineScraper({
  name: 'inside', args: z.object({ site: z.string() }), item: z.object({ title: z.string() }), key: 'title',
  routes: { page: { match: '/' } },
  start: ({ args, enqueue }) => enqueue('page', new URL(args.site)),
  handlers: { async page({ $, emit }) { await emit({ title: $.text('h1') }) } },
  limits: { retries: 0 },
})`

test('accepts typed private addresses in commands, but no names that resolve to one', {
  timeout: 240_000,
}, async () => {
  let requests = 0
  const server = createServer((request, response) => {
    if (request.url !== '/robots.txt') requests++
    response.setHeader('content-type', request.url === '/robots.txt' ? 'text/plain' : 'text/html')
    response.end(request.url === '/robots.txt' ? '' : '<title>in</title><h1>in</h1>')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  await using _ = {
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
  using folder = temporaryFolder()
  const cwd = folder.path
  mkdirSync(join(cwd, 'scrapers'))
  writeFileSync(join(cwd, 'scrapers', 'inside.ts'), SCRAPER)
  const { port } = server.address() as AddressInfo
  const commands: Record<string, (url: string) => string[]> = {
    fetch: (url) => ['fetch', url],
    map: (url) => ['map', url],
    robots: (url) => ['robots', url],
    try: (url) => ['try', 'inside', url, '--site', url],
    crawl: (url) => ['crawl', url, '--pages', '1'],
    run: (url) => ['run', 'inside', '--site', url],
    shell: (url) => ['shell', url],
    new: (url) => ['new', `n${requests}${url.length}`, url],
  }
  const ask = async (name: string, url: string, ...flags: string[]) => {
    const before = requests
    const { code, stdout, stderr } = await sluice([...commands[name]!(url), ...flags], { cwd, env })
    return { code, text: stdout + stderr, isReached: requests > before }
  }
  for (const name of Object.keys(commands)) {
    const typed = await ask(name, `http://127.0.0.1:${port}/`)
    assert.doesNotMatch(typed.text, /E_PRIVATE_ADDRESS/, `${name}: a typed address`)
    const named = await ask(name, `http://loopback.inside.test:${port}/`)
    assert.match(named.text, /E_PRIVATE_ADDRESS/, `${name}: a name`)
    assert.equal(named.isReached, false, `${name}: nothing was asked`)
  }
  const others = await Promise.all([
    ask('crawl', `http://mapped.inside.test:${port}/`),
    ask('crawl', `http://mixed.inside.test:${port}/`),
    ask('crawl', 'http://metadata.inside.test/latest/meta-data/'),
  ])
  for (const { text, isReached } of others) {
    assert.match(text, /E_PRIVATE_ADDRESS/)
    assert.equal(isReached, false)
  }
  const allowed = await ask(
    'fetch',
    `http://loopback.inside.test:${port}/`,
    '--allow-address',
    `loopback.inside.test:${port}`,
  )
  assert.equal(allowed.code, 0, allowed.text)
  const local = await ask('fetch', `http://localhost:${port}/`)
  assert.equal(local.code, 0, local.text)
})
