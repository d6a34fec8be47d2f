/** Proxies as people have them: a list in a flag, a variable or a file, in tiers, in any of the formats that sellers use. */
import { readFileSync } from 'node:fs'
import * as z from 'zod'
import { parseProxy } from '../fetch/net/proxy-url.ts'

/** Large enough for a whole provider, but not for a wrong file. */
const PROXIES_MAX = 10_000
const FILE_BYTES_MAX = 4 * 1024 ** 2

/** URLs by tier. Problems name the position of an entry, never the entry itself: it may contain a password. */
export const proxiesSchema = z
  .union([z.string(), z.array(z.union([z.string(), z.array(z.string())]))], {
    error: 'must be a list of proxies, or @FILE',
  })
  .transform((given, context): string[][] => {
    try {
      const tiers = tiersOf(given)
      const count = tiers.flat().length
      if (count === 0) throw new Error('no proxy is named')
      if (count > PROXIES_MAX) throw new Error(`at most ${PROXIES_MAX} proxies, not ${count}`)
      return tiers
    } catch (error) {
      context.addIssue({ code: 'custom', message: (error as Error).message })
      return z.NEVER
    }
  })

function tiersOf(given: string | readonly (string | readonly string[])[]): string[][] {
  if (typeof given !== 'string') {
    const isTiered = given.some((entry) => typeof entry !== 'string')
    return isTiered
      ? given.map((tier) => [tier].flat().map(proxyUrl))
      : [given.map((url, index) => proxyUrl(url as string, index))]
  }
  const text = given.startsWith('@') ? readList(given.slice(1)) : given
  let entries = 0
  return text
    .replace(/^\s*#.*$/gm, '')
    .split(/;|^\s*-{3,}\s*$/m)
    .map((tier) => tier.split(/[\s,]+/).filter(Boolean).map((entry) => proxyUrl(entry, entries++))) // biome-ignore format: one chain
    .filter((tier) => tier.length > 0)
}

function readList(path: string): string {
  const text = readFileSync(path, 'utf8')
  if (text.length > FILE_BYTES_MAX) throw new Error(`${path} is larger than a list of proxies`)
  return text
}

/** `host:port`, `host:port:user:password`, or a URL; normalised, with special characters of the login escaped. */
function proxyUrl(entry: string, index: number): string {
  const [, host, user, password] = /^([\w.-]+:\d{1,5})(?::([^:]+):(.+))?$/.exec(entry) ?? []
  const login = user === undefined ? '' : `${encodeURIComponent(user)}:${encodeURIComponent(password!)}@`
  const url = host === undefined ? entry : `http://${login}${host}`
  try {
    const { kind, port } = parseProxy(url)
    const { href } = new URL(url)
    return kind === 'http' && port === 80 ? href.replace(/\/?$/, ':80') : href // URLs omit it, and then 8080 would be assumed
  } catch {
    throw new Error(
      `entry ${index + 1} is not a proxy: socks5://[USER:PASSWORD@]HOST:PORT, http://…, HOST:PORT or HOST:PORT:USER:PASSWORD`,
    )
  }
}
