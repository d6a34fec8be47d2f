/** Proxies and identities as a user uses them: `fetch` and `doctor` show them; pages, files and browsers go through them. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { openSite } from './browser/site.ts'
import { chromiumForTests } from './services/chromium.ts'
import { freePort } from './services/free-port.ts'
import { type HttpProxyServer, tinyproxyForTests } from './services/tinyproxy.ts'
import { sluice, temporaryFolder } from './sluice.ts'

const login = { user: 'kunde7', password: 'geheim4711' }
let proxy: HttpProxyServer
before(async () => {
  proxy = await tinyproxyForTests(login)
})
after(() => proxy[Symbol.asyncDispose]())

const tunnels = () => proxy.log.split('Established connection').length - 1

test('fetch shows the identity and the proxy', async () => {
  await using site = await openSite({ '/': '<p>a page</p>', '/robots.txt': 'User-agent: *\n' })
  const args = ['fetch', site.url, '--allow-private', '--proxies', proxy.url, '--identity', 'browser']
  const { code, stdout, stderr } = await sluice([...args, '--json'])
  assert.equal(code, 0, stderr)
  const { as } = JSON.parse(stdout)
  assert.equal(as.proxy, `127.0.0.1:${proxy.port}`)
  assert.match(as.profile, /^(?:chrome|edge|firefox|safari)-/)
  const shown = await sluice(args)
  assert.match(shown.stdout, new RegExp(`as +i\\d+, \\w+-\\w+ through 127\\.0\\.0\\.1:${proxy.port}`))
  assert.doesNotMatch(stdout + stderr + shown.stdout + shown.stderr, /geheim/)
})

test('doctor and config show which proxies answer, and no password', async () => {
  const dead = `http://${login.user}:${login.password}@127.0.0.1:${await freePort()}`
  const env = { SLUICE_PROXIES: `${proxy.url},${dead}` }
  const { stdout } = await sluice(['doctor', '--json'], { env })
  assert.match(stdout, /1 of 2 answer/)
  const config = await sluice(['config', '--explain'], { env })
  assert.match(config.stdout, /proxies/)
  assert.doesNotMatch(stdout + config.stdout + config.stderr, /geheim/)
})

const SCRAPER = `
import { defineScraper } from 'sluice'
import * as z from 'zod'
export default defineScraper({
  name: 'ways',
  args: z.object({ base: z.url() }),
  item: z.object({ path: z.string(), cookie: z.string() }),
  key: 'path',
  routes: { first: { match: '/first' }, next: { match: '/next' }, app: { match: '/app', fetch: 'browser' } },
  start: ({ args, enqueue }) => enqueue('first', new URL('/first', args.base)),
  handlers: {
    async first({ html, emit, enqueue, file, url }) {
      await emit({ path: url.pathname, cookie: html })
      await file('/report.csv')
      await enqueue('next', '/next')
    },
    async next({ html, emit, enqueue, url }) {
      await emit({ path: url.pathname, cookie: html })
      await enqueue('app', '/app')
    },
    app: ({ html, emit, url }) => emit({ path: url.pathname, cookie: html }),
  },
})
`

test('pages, files and browsers of a run go through its proxies, each as one identity', async () => {
  const agents: string[] = []
  await using site = await openSite(
    Object.fromEntries(
      ['/first', '/next', '/app', '/report.csv'].map((path) => [
        path,
        (request, response) => {
          agents.push(`${path} ${request.headers['user-agent']}`)
          response.setHeader('set-cookie', `at=${path.slice(1)}`)
          response.setHeader('content-type', path.endsWith('.csv') ? 'text/csv' : 'text/html')
          response.end(request.headers.cookie ?? 'none')
        },
      ]),
    ),
  )
  using folder = temporaryFolder()
  const file = join(folder.path, 'ways.ts')
  writeFileSync(file, SCRAPER)
  const before = tunnels()
  const ways = ['--proxies', proxy.url, '--identity', 'browser', '--identity-strategy', 'until-failure']
  const more = ['--robots', 'ignore', '--rps', '0', '--delay', '1ms-5ms', '--out', folder.path, '--json']
  const { code, stdout, stderr } = await sluice(['run', file, '--arg', `base=${site.url}`, ...ways, ...more], {
    env: { SLUICE_CHROME: await chromiumForTests() },
  })
  assert.equal(code, 0, stdout + stderr)
  const { items, files } = JSON.parse(stdout)
  assert.deepEqual([items.new, files.stored], [3, 1])
  assert.ok(tunnels() - before >= 3, 'pages, the file and the browser')
  const [first, next, app] = ['/first ', '/next ', '/app '].map((path) => agents.find((line) => line.startsWith(path))!.slice(path.length)) // biome-ignore format: one line
  assert.match(first!, /Chrome\/156/)
  assert.deepEqual([next, app], [first, first])
  const lines = readFileSync(join(folder.path, 'ways/latest/items.jsonl'), 'utf8')
  assert.match(lines, /"\/next","cookie":"at=first"/, 'the second page was asked for with the first one’s cookie')
  assert.ok(readdirSync(join(folder.path, 'ways/latest/files'), { recursive: true }).length > 0)
  assert.doesNotMatch(stdout + stderr + lines, /geheim/)
})
