/** Sitemaps and robots.txt files as found on real sites. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { sitemapEntries, sitemapsOfRobots, sitemapText } from './sitemaps.ts'

const URL_OF = new URL('https://acme.test/sitemap.xml')

test('uses the sitemaps that robots.txt names on its own host, else the usual one', () => {
  const robots = 'User-agent: *\nSitemap: https://acme.test/a.xml\n  sitemap:/b.xml\nSitemap: https://other.test/c.xml'
  assert.deepEqual(sitemapsOfRobots(robots, URL_OF), ['https://acme.test/a.xml', 'https://acme.test/b.xml'])
  assert.deepEqual(sitemapsOfRobots('', URL_OF), ['https://acme.test/sitemap.xml'])
})

test('reads compressed and prefixed files', () => {
  const xml =
    '<sm:urlset xmlns:sm="x"><sm:url><sm:loc> https://acme.test/jobs/1?a=1&amp;b=2 </sm:loc></sm:url></sm:urlset>'
  assert.deepEqual(sitemapEntries(sitemapText(gzipSync(xml)), URL_OF).pages, ['https://acme.test/jobs/1?a=1&b=2'])
})

test('raises an alarm for a page instead of a sitemap, and stops at a decompression bomb', () => {
  assert.throws(() => sitemapEntries('<html><body>no</body></html>', URL_OF), { code: 'E_SELECTOR_EMPTY' })
  assert.throws(() => sitemapText(gzipSync(Buffer.alloc(80 * 1024 ** 2))), RangeError)
})
