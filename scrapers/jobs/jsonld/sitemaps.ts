/** The sitemaps of a site, as far as jobs need them. */
import { gunzipSync } from 'node:zlib'
import { readXml, type XmlElement } from 'sluice/jobs'

/** The protocol's own limit is 50 MB. */
const SITEMAP_BYTES_MAX = 64 * 1024 ** 2

/** The sitemaps that a robots.txt names, else the usual location. Those on other hosts are omitted. */
export function sitemapsOfRobots(text: string, url: URL): string[] {
  const named = [...text.matchAll(/^[ \t]*sitemap[ \t]*:[ \t]*(\S+)/gim)].map(([, address]) => address!)
  const found = ownAddresses(named, url)
  return found.length > 0 ? found : [new URL('/sitemap.xml', url).href]
}

/** Many are stored compressed, and sent that way. */
export function sitemapText(body: Buffer): string {
  const isGzip = body[0] === 0x1f && body[1] === 0x8b
  return (isGzip ? gunzipSync(body, { maxOutputLength: SITEMAP_BYTES_MAX }) : body).toString('utf8')
}

/** The URLs in a sitemap, or those of the sitemaps in an index. */
export function sitemapEntries(text: string, url: URL): { pages: string[]; sitemaps: string[] } {
  const isIndex = /<(?:\w{1,20}:)?sitemapindex[\s>]/i.test(text.slice(0, 10_000))
  const root = readXml(text, { root: isIndex ? 'sitemapindex' : 'urlset', url: url.href })
  const addresses = (name: string) =>
    ownAddresses(
      root.all(name, 'loc').map((loc: XmlElement) => loc.text),
      url,
    )
  return isIndex ? { pages: [], sitemaps: addresses('sitemap') } : { pages: addresses('url'), sitemaps: [] }
}

/** URLs of the host itself, each once. */
function ownAddresses(addresses: readonly string[], url: URL): string[] {
  const found = addresses.flatMap((address) => {
    const parsed = URL.parse(address, url.href)
    return parsed !== null && parsed.host === url.host ? [parsed.href] : []
  })
  return [...new Set(found)]
}
