/** The headers of a request made as a browser: the profile's, in its order, plus those of the route and the cookies. */
import { isLoopbackHost } from '../../core/loopback.ts'
import type { Profile } from './profiles.ts'

interface ProfileHeadersRequest {
  url: URL
  /** The route's own headers, with lower-case names. They replace the profile's. */
  given: Readonly<Record<string, string>> | undefined
  /** The Cookie header of the identity; empty if there are none. */
  cookies: string
  isPost: boolean
}

/** Alternating names and values, as undici takes them. */
export function profileHeaders(profile: Profile, { url, given, cookies, isPost }: ProfileHeadersRequest): string[] {
  const left = new Map(Object.entries(given ?? {}))
  const contentType = left.get('content-type') ?? 'application/json'
  const isTrustworthy = url.protocol === 'https:' || isLoopbackHost(url.hostname)
  const post = isPost ? { post: { origin: url.origin, contentType } } : {}
  // Node's TLS offers HTTP/1.1 only. A browser's handshake offers both, and servers nearly always choose HTTP/2.
  const isHttp2 = profile.tls !== undefined && url.protocol === 'https:'
  const list: string[] = []
  for (const [name, value] of profile.headersFor({ isTrustworthy, isHttp2, ...post })) {
    const key = name.toLowerCase()
    const own = left.get(key)
    left.delete(key)
    // The cookies the server has just set come last: if a name occurs twice, servers take the last more often than the first.
    const text = key === 'cookie' ? [own, cookies].filter(Boolean).join('; ') : (own ?? value)
    if (text !== '') list.push(name, text)
  }
  for (const [name, value] of left) list.push(titleCase(name), value)
  return list
}

const titleCase = (name: string) => name.replace(/(?:^|-)[a-z]/g, (letter) => letter.toUpperCase())
