/** What the producer reads from its sources, without a queue. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ScrapeError } from '../../core/errors.ts'
import { type ProduceRequest, produced } from './produce.ts'

/** A request whose web consists of these files. */
function requestOf(files: Record<string, string>, more: Partial<ProduceRequest>) {
  const asked: string[] = []
  const problems: string[] = []
  const fetch = async ({ url }: { url: string }) => {
    asked.push(url)
    if (files[url] === undefined) throw new ScrapeError('E_NOT_FOUND', 'status 404')
    return { body: Buffer.from(files[url]) }
  }
  const sitemaps = Object.keys(files).filter((url) => url.endsWith('.xml'))
  const robots = { rules: async () => ({ sitemaps }) }
  const request: ProduceRequest = {
    chain: { fetcher: { fetch, robots } } as unknown as ProduceRequest['chain'],
    sitemaps: [],
    sites: [],
    urls: [],
    urlsFile: undefined,
    sinceMs: undefined,
    rules: undefined,
    signal: new AbortController().signal,
    onProblem: (message) => problems.push(message),
    ...more,
  }
  return { request, asked, problems }
}

const urlset = (...locs: string[]) => `<urlset>${locs.map((loc) => `<url><loc>${loc}</loc></url>`).join('')}</urlset>`

test('yields entries that are not URLs as they come instead of collecting them until one is', async () => {
  const bad = urlset('ftp://x.example/1', 'ftp://x.example/2')
  const files = {
    'https://a.example/index': `<sitemapindex><sitemap><loc>1</loc></sitemap><sitemap><loc>2</loc></sitemap></sitemapindex>`,
    'https://a.example/1': bad,
    'https://a.example/2': bad,
  }
  const { request, asked } = requestOf(files, { sitemaps: ['https://a.example/index'] })
  const found = produced(request)
  const first = (await found.next()).value!
  assert.deepEqual([first.text, first.from, first.error?.code], ['ftp://x.example/1', 'https://a.example/1', 'E_URL_SCHEME']) // biome-ignore format: one line reads better
  assert.deepEqual(asked, ['https://a.example/index', 'https://a.example/1'])
  assert.equal((await Array.fromAsync(found)).length, 3)
})

test('names the user’s own URLs, and pages on exactly the host and port of the user’s sitemaps and sites', async () => {
  const locs = ['http://a.example:81/1', 'http://a.example/2', 'http://127.0.0.1:81/3', 'http://b.example/4']
  const files = { 'http://a.example:81/s.xml': urlset(...locs), 'http://b.example/sitemap.xml': urlset(...locs) }
  const { request } = requestOf(files, { urls: ['http://127.0.0.1/'], sitemaps: ['http://a.example:81/s.xml'] })
  const named = async (more: Partial<ProduceRequest>) =>
    (await Array.fromAsync(produced({ ...request, ...more }))).filter(({ isNamed }) => isNamed).map(({ text }) => text)
  assert.deepEqual(await named({}), ['http://127.0.0.1/', 'http://a.example:81/1'])
  assert.deepEqual(await named({ urls: [], sitemaps: [], sites: ['http://b.example/shop'] }), [
    'http://b.example/4', // once for each of the two files listed in robots.txt
    'http://b.example/4',
  ])
})

test('reports an unreadable sitemap as a problem if there is another source, and throws if there is none', async () => {
  const files = { 'https://a.example/good.xml': urlset('/1') }
  const sitemaps = ['https://a.example/gone.xml', 'https://a.example/good.xml']
  const { request, problems } = requestOf(files, { sitemaps })
  assert.deepEqual((await Array.fromAsync(produced(request))).map(({ text }) => text), ['https://a.example/1']) // biome-ignore format: one line reads better
  assert.deepEqual(problems, ['https://a.example/gone.xml cannot be read: status 404 (E_NOT_FOUND)'])

  const gone = ['https://a.example/gone.xml']
  await assert.rejects(Array.fromAsync(produced({ ...request, sitemaps: gone })), { code: 'E_NOT_FOUND' })
  const withUrl = produced({ ...request, urls: ['https://b.example/'], sitemaps: gone })
  assert.equal((await Array.fromAsync(withUrl)).length, 1)
})

test('stops the producer on an error that stops everything', async () => {
  const { request } = requestOf({ 'https://a.example/s.xml': urlset('/1') }, { sitemaps: ['https://a.example/s.xml'] })
  const fetch = async () => {
    throw new ScrapeError('E_SERVICE', 'away')
  }
  const chain = { fetcher: { fetch } } as unknown as ProduceRequest['chain']
  await assert.rejects(Array.fromAsync(produced({ ...request, chain, urls: ['https://b.example/'] })), { code: 'E_SERVICE' }) // biome-ignore format: one line reads better
})
