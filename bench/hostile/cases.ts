/** Hostile pages by family, each with its correct outcome: `page`, or an error code. */
import type { ErrorCode } from '../../src/core/error-table.ts'
import { CERTIFICATES } from '../../test/site/certificates.ts'
import { type Behaviour, drip, type HostileSite, html, redirect, respond } from '../../test/site/hostile.ts'
import { HTML_PAGES } from './html-pages.ts'

export type Outcome = 'page' | ErrorCode

export interface HostileCase {
  readonly name: string
  readonly expect: Outcome
  /** Default: the case of the hostile site with this name. */
  readonly behaviour?: Behaviour
  /** Instead of `/NAME` of its site. */
  readonly url?: (site: HostileSite, internal: HostileSite) => string
  /** Default: no robots.txt. */
  readonly robots?: Behaviour
  readonly tls?: { key: string; cert: string }
}

const named = (expect: Outcome, names: string) => names.split(' ').map((name): HostileCase => ({ name, expect }))
const served = (expect: Outcome, cases: Record<string, Behaviour>) =>
  Object.entries(cases).map(([name, behaviour]): HostileCase => ({ name, expect, behaviour }))
const queried = (name: string, query: Record<string, string>, expect: Outcome): HostileCase => ({
  name: `${name} ${Object.values(query).join(' ')}`,
  expect,
  url: (site) => site.url(name, query),
})
const withRobots = (expect: Outcome, cases: Record<string, Behaviour>) =>
  Object.entries(cases).map(
    ([name, robots]): HostileCase => ({ name, expect, robots, url: (site) => site.url('page') }),
  )

const next = (href: string) => `<a class="next" href="${href}">next</a>`
/** None of them affects the other links of the page. */
const BAD_LINKS = [
  ['a link of 1 MB', `/${'x'.repeat(1_000_000)}`],
  ['a link without a host', 'http://'],
  ['a link with a bad IPv6 address', 'http://[::1'],
  ['a link with no such port', 'http://a.test:99999/'],
  ['a link with a blank in its scheme', 'ht tp://x'],
  ['a link with an unknown scheme', 'gopher://127.0.0.1/'],
  ['a link of a script', 'javascript:alert(1)'],
  ['a link of three slashes', 'http:///x'],
  ['a link of a per cent sign', 'http://%/'],
] as const

/** Each leads to a service on loopback that no page may reach. */
const INTERNAL = [
  '127.0.0.1', '2130706433', '0x7f000001', '0177.0.0.1', '127.1', '0x7f.1', '0', '0.0.0.0', 'localhost', 'LOCALHOST.', '127.0.0.1.',
  '[::1]', '[::]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[64:ff9b::7f00:1]', '[2002:7f00:1::]', 'user@127.0.0.1', 'a.test@127.0.0.1',
  '169.254.169.254', '10.0.0.1', '192.168.0.1', '172.16.0.1', '100.64.0.1', '[fe80::1]', '[fd00::1]', '①②⑦.⓪.⓪.①',
] // biome-ignore format: a list
const ssrf = INTERNAL.map(
  (host): HostileCase => ({
    name: host,
    expect: 'E_PRIVATE_ADDRESS',
    url: (site, internal) => site.url('redirect-to', { to: `http://${host}:${internal.port}/page` }),
  }),
)

const blockPage = (title: string, body: string) =>
  `<!doctype html><html><head><title>${title}</title></head><body>${body}</body></html>`
const CHALLENGE = blockPage('Just a moment...', '<script>window._cf_chl_opt={cvId:"3"}</script>')
const CAPTCHA = "<html><head><script>var dd={'rt':'i','host':'geo.captcha-delivery.com'}</script></head></html>"
const DENIED = blockPage(
  'Attention Required! | Cloudflare',
  '<div id="cf-error-details"><h1>Sorry, you have been blocked</h1></div>',
)
const HTML = { 'Content-Type': 'text/html' }

const rules = (text: string, type = 'text/plain') => respond(200, text, { 'Content-Type': type })
const RULES = 'User-agent: *\nDisallow: /page\n'

/** Each hop is fast enough, all of them together are not. */
const slowChain: Behaviour = (socket, request, site) => {
  const step = Number(request.query.get('step') ?? 0) + 1
  const timer = setTimeout(() => redirect(`/case?step=${step}`)(socket, request, site), 1500)
  socket.on('close', () => clearTimeout(timer))
}

export const FAMILIES: Record<string, readonly HostileCase[]> = {
  slow: [
    ...named('E_TIMEOUT_HEADERS', 'silent slow-head'),
    ...named('E_TIMEOUT_BODY', 'stalled-body'),
    ...named('E_TIMEOUT_TOTAL', 'slow-body'),
    ...served('E_TIMEOUT_TOTAL', { 'a slow chain of redirects': slowChain }),
    ...named('E_REDIRECT_LIMIT', 'slow-chain'),
    ...named('E_FORBIDDEN', 'slow-error-body'),
    ...named('E_TOO_LARGE', 'endless-chunked endless-until-close'),
    ...named('page', 'slow-redirect-body'),
  ],
  'net and framing': [
    ...named('E_CONNECTION', 'reset-before-head close-before-head reset-in-head close-in-head'),
    ...named('E_BODY_SHORT', 'reset-in-body close-in-body close-in-body-said close-in-chunk close-between-chunks close-between-chunks-said until-close-reset'),
    ...named('E_PROTOCOL', 'length-twice length-twice-equal length-negative length-words length-huge length-and-chunked chunked-and-length chunk-size-bad chunk-size-negative chunk-size-huge chunk-no-newline http-0.9 garbage status-words other-protocol early-hints-flood continue-flood status-000 switching-unasked head-nul head-no-colon head-lf-only'),
    ...named('E_STATUS', 'partial-unasked'),
    ...named('E_SUSPECT', 'length-too-small'),
    ...named('E_EMPTY', 'no-content no-content-with-body no-content-then-garbage'),
    ...named('E_HEADERS_TOO_LARGE', 'head-huge head-many head-endless trailers-huge'),
    ...named('page', 'continue-unasked continue-thrice surplus-after-body until-close http-1.0 chunk-extensions early-hints head-large head-odd-bytes page-and-close line-after large-and-close'),
  ], // biome-ignore format: lists
  encoding: [
    ...named('page', 'gzip x-gzip gzip-shouting gzip-chunked br zstd deflate deflate-raw gzip-twice gzip-in-br encoding-identity redirect-encoded redirect-body-bomb gzip-two-members zstd-two-frames'),
    ...named('E_EMPTY', 'gzip-empty'),
    ...named('E_ENCODING', 'gzip-cut gzip-cut-trailer gzip-cut-until-close gzip-none-until-close gzip-crc gzip-length gzip-corrupt gzip-trailing deflate-cut deflate-trailing br-cut br-trailing zstd-cut zstd-trailing zstd-window chain-4 chain-1000 encoding-unknown encoding-lies encoding-unsaid encoding-wrong'),
    ...named('E_TOO_LARGE', 'bomb-gzip bomb-br bomb-zstd bomb-double'),
  ], // biome-ignore format: lists
  charset: [
    ...named('page', 'charset-utf-8 charset-quoted charset-header charset-bom-against-header charset-header-against-meta charset-meta charset-meta-http-equiv charset-meta-late charset-xml charset-utf-16le charset-utf-16be charset-gb18030 charset-windows-1252 charset-none-utf-8 charset-none-latin charset-unknown charset-invalid-bytes charset-json charset-untyped'),
    ...named('E_CHARSET', 'charset-utf-7 charset-utf-7-meta charset-replacement charset-replacement-meta charset-unknown-bytes'),
  ], // biome-ignore format: lists
  redirects: [
    ...named('page', 'redirect-relative redirect-spaces redirect-inner-space redirect-fragment redirect-query redirect-utf-8 redirect-latin-1 redirect-dots redirect-backslash redirect-credentials redirect-body-endless cookie-wall'),
    ...named('E_REDIRECT_LIMIT', 'redirect-loop redirect-loop-2'),
    ...named('E_REDIRECT_BAD', 'redirect-nowhere redirect-empty redirect-huge redirect-two'),
    queried('redirect-chain', { left: '10' }, 'page'),
    queried('redirect-chain', { left: '11' }, 'E_REDIRECT_LIMIT'),
    ...['file:///etc/passwd', 'data:text/html,hello', 'ftp://127.0.0.1/x', 'gopher://127.0.0.1:70/_x', 'unix:/run/docker.sock:/info', 'javascript:alert(1)', 'about:blank', 'http://', 'http://[::1'].map(
      (to) => queried('redirect-to', { to }, 'E_REDIRECT_BAD'),
    ),
  ], // biome-ignore format: lists
  ssrf,
  urls: [
    { name: 'credentials', expect: 'page', url: (site) => site.url('page').replace('//', '//user:secret@') },
    { name: 'upper case', expect: 'page', url: (site) => site.url('page').replace('http', 'HTTP') },
    { name: 'dot segments', expect: 'page', url: (site) => `${site.origin}/a/./b/../../page` },
    { name: 'backslashes', expect: 'page', url: (site) => `${site.origin}\\page` },
    { name: 'tabs and newlines', expect: 'page', url: (site) => `${site.origin}/pa\tg\ne` },
    { name: 'encoded slash', expect: 'E_NOT_FOUND', url: (site) => `${site.origin}/a%2Fpage` },
    // The good link leads to a 410, which shows that it was followed.
    ...served(
      'E_NOT_FOUND',
      Object.fromEntries(
        BAD_LINKS.map(([name, href]) => [name, html(`<h1>x</h1>${next(href)}${next('/status?code=410')}`)]),
      ),
    ),
  ],
  'rate and status': [
    ...['', '0', '1', '-7', 'soon', '99999999999', '100000000000000000000', 'Wed, 21 Oct 2015 07:28:00 GMT'].map((after) =>
      queried('status', { code: '429', 'retry-after': after }, 'E_RATE_LIMITED'),
    ),
    queried('status', { code: '503', 'retry-after': '31536000' }, 'E_SERVER'),
    ...([['400', 'E_STATUS'], ['401', 'E_UNAUTHORIZED'], ['403', 'E_FORBIDDEN'], ['404', 'E_NOT_FOUND'], ['410', 'E_NOT_FOUND'], ['418', 'E_STATUS'], ['451', 'E_STATUS'], ['500', 'E_SERVER'], ['502', 'E_SERVER'], ['503', 'E_SERVER'], ['599', 'E_SERVER'], ['999', 'E_BLOCKED']] as const).map(
      ([code, expect]) => queried('status', { code }, expect),
    ),
    ...named('E_NOT_FOUND', 'status-error-huge'),
    ...named('E_SERVER', 'status-error-cut'),
    ...named('E_FORBIDDEN', 'status-error-bad-gzip'),
  ], // biome-ignore format: lists
  'block pages': [
    ...served('E_CAPTCHA', {
      'challenge with 200': html(CHALLENGE),
      'challenge with 403': respond(403, CHALLENGE, HTML),
      'challenge with 429': respond(429, CHALLENGE, HTML),
      'challenge with 503': respond(503, CHALLENGE, HTML),
      'CAPTCHA with 200': html(CAPTCHA),
      'CAPTCHA with 403': respond(403, CAPTCHA, HTML),
    }),
    ...served('E_BLOCKED', { 'blocked with 403': respond(403, DENIED, HTML), 'blocked with 200': html(DENIED) }),
  ],
  html: HTML_PAGES,
  robots: [
    ...withRobots('page', {
      'not found': respond(404),
      forbidden: respond(403),
      'redirect loop': redirect('/robots.txt'),
      empty: rules(''),
      'HTML instead': rules('<html><h1>Welcome</h1></html>', 'text/html'),
      'a bomb of rules': rules(`User-agent: *\n${'Disallow: /*a*b*c*d*e*$\n'.repeat(20_000)}`),
      'allowed by the longer rule': rules('User-agent: *\nDisallow: /\nAllow: /page\n'),
    }),
    ...withRobots('E_ROBOTS', {
      forbids: rules(RULES),
      'with a BOM': rules(`\ufeff${RULES}`),
      'of the wrong type': rules(RULES, 'application/octet-stream'),
      'wild cards': rules('User-agent: *\nDisallow: /p*e$\n'),
      'two groups': rules(`User-agent: *\nAllow: /x\n\n${RULES}`),
      'huge, rule first': rules(`${RULES}${'# filler\n'.repeat(200_000)}`),
    }),
    ...withRobots('E_CONNECTION', { reset: (socket) => socket.resetAndDestroy() }),
    ...withRobots('E_ROBOTS_UNREACHABLE', {
      'server error': respond(500),
      silent: () => {},
      drips: drip('HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n', 'x', 5),
    }),
  ],
  tls: [
    ...(['expired', 'selfSigned'] as const).map(
      (name): HostileCase => ({ name, expect: 'E_TLS', tls: CERTIFICATES[name], url: (site) => site.url('page') }),
    ),
    // The server waits for the end of a request that never comes.
    { name: 'TLS to a plain port', expect: 'E_TIMEOUT_CONNECT', url: (site) => site.url('page').replace('http:', 'https:') },
  ], // biome-ignore format: lists
}
