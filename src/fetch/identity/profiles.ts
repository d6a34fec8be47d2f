/**
 * Browser profiles: exactly what a real browser on a real platform sends, in its order. A profile is used as a whole; two are
 * never mixed. We keep our own table because generated data (header-generator: 6.5 MB) was seven releases behind the installed
 * Chromium, and a profile must agree with the browser that opens the same identity's pages.
 */

export type ProfileName = keyof ReturnType<typeof profilesAt>

export interface Profile {
  readonly name: string
  /** Only these can be used with the browser we have. */
  readonly isChromium: boolean
  readonly userAgent: string
  /** As in `navigator.languages`. */
  readonly languages: readonly string[]
  /** What CDP needs in addition to the user agent; undefined for browsers without client hints. */
  readonly hints: ClientHints | undefined
  /** `navigator.platform`. */
  readonly platform: string
  readonly viewport: { readonly width: number; readonly height: number }
  /** `Connection` goes before the first of these headers, or at the end if there are none. Undefined: right after Host. */
  readonly connectionBefore: readonly string[] | undefined
  /** The matching handshake, as the TLS library names it. Undefined: Node's own. */
  readonly tls?: { readonly browser: string; readonly os: string }
  /** Header names in their HTTP/1.1 spelling, in order, without Host and Connection. `Cookie` marks its position. */
  headersFor(request: ProfileRequest): [name: string, value: string][]
}

interface ProfileRequest {
  /** https, or loopback: elsewhere browsers send no client hints, no Sec-Fetch headers and fewer encodings. */
  isTrustworthy: boolean
  /** Browsers send a few more headers over HTTP/2. */
  isHttp2?: boolean
  /** A request by a page's own script (which sends JSON), instead of a navigation. */
  post?: { origin: string; contentType: string }
}

interface ClientHints {
  brands: { brand: string; version: string }[]
  fullVersionList: { brand: string; version: string }[]
  platform: string
  platformVersion: string
  architecture: string
  bitness: string
  model: string
  mobile: boolean
  wow64: boolean
}

interface Platform {
  /** As in the user agent; browsers froze it years ago, whatever the system. */
  agent: string
  navigator: string
  hint: string
  hintVersion: string
  architecture: string
  viewport: { width: number; height: number }
}

interface BrowserVersions {
  chrome: number
  edge: number
  firefox: number
  safari: string
}

/** What was current in November 2026. */
export const VERSIONS: BrowserVersions = { chrome: 156, edge: 156, firefox: 156, safari: '26.1' }
/** 149 does not accept JPEG XL, 156 does; the versions between are untested. */
const JXL_MAJOR_MIN = 150

const WINDOWS: Platform = {
  agent: 'Windows NT 10.0; Win64; x64',
  navigator: 'Win32',
  hint: 'Windows',
  hintVersion: '19.0.0',
  architecture: 'x86',
  viewport: { width: 1536, height: 730 },
}
const MAC: Platform = {
  agent: 'Macintosh; Intel Mac OS X 10_15_7',
  navigator: 'MacIntel',
  hint: 'macOS',
  hintVersion: '26.1.0',
  architecture: 'arm',
  viewport: { width: 1440, height: 790 },
}
const LINUX: Platform = {
  agent: 'X11; Linux x86_64',
  navigator: 'Linux x86_64',
  hint: 'Linux',
  hintVersion: '6.12.0',
  architecture: 'x86',
  viewport: { width: 1536, height: 740 },
}

const LANGUAGES = ['en-US', 'en']

/** All profiles, for browsers of these versions. */
export function profilesAt(versions: BrowserVersions) {
  const chrome = { brand: 'Google Chrome', major: versions.chrome } as const
  const edge = { brand: 'Microsoft Edge', major: versions.edge } as const
  const gecko = versions.firefox
  return {
    'chrome-windows': chromium('chrome-windows', WINDOWS, chrome),
    'chrome-macos': chromium('chrome-macos', MAC, chrome),
    'chrome-linux': chromium('chrome-linux', LINUX, chrome),
    'edge-windows': chromium('edge-windows', WINDOWS, edge),
    'edge-macos': chromium('edge-macos', MAC, edge),
    'firefox-windows': firefox('firefox-windows', WINDOWS, `Windows NT 10.0; Win64; x64; rv:${gecko}.0`),
    'firefox-macos': firefox('firefox-macos', MAC, `Macintosh; Intel Mac OS X 10.15; rv:${gecko}.0`),
    'firefox-linux': firefox('firefox-linux', LINUX, `X11; Linux x86_64; rv:${gecko}.0`),
    'safari-macos': safari('safari-macos', MAC, versions.safari),
  } satisfies Record<string, Profile>
}

export const PROFILES = profilesAt(VERSIONS)

export const profiles: readonly Profile[] = Object.values(PROFILES)

/**
 * Brands as this Chromium version orders and obfuscates them, so that sites do not rely on them: the name, version and position
 * of the nonsense brand follow from the version.
 */
export function brandsOf(major: number, brand: string, version: string, nonsenseSuffix = ''): ClientHints['brands'] {
  const letters = [' ', '(', ':', '-', '.', '/', ')', ';', '=', '?', '_']
  const nonsense = {
    brand: `Not${letters[major % 11]}A${letters[(major + 1) % 11]}Brand`,
    version: `${['8', '99', '24'][major % 3]}${nonsenseSuffix}`,
  }
  const orders = ['012', '021', '102', '120', '201', '210']
  const order = orders[major % 6]!
  const brands: ClientHints['brands'] = []
  for (const [i, one] of [nonsense, { brand: 'Chromium', version }, { brand, version }].entries())
    brands[Number(order[i])] = one
  return brands
}

interface ChromiumBrand {
  brand: 'Google Chrome' | 'Microsoft Edge'
  major: number
}

function chromium(name: string, platform: Platform, { brand, major }: ChromiumBrand): Profile {
  const suffix = brand === 'Microsoft Edge' ? ` Edg/${major}.0.0.0` : ''
  const userAgent = `Mozilla/5.0 (${platform.agent}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${major}.0.0.0 Safari/537.36${suffix}`
  const hints: ClientHints = {
    brands: brandsOf(major, brand, String(major)),
    fullVersionList: brandsOf(major, brand, `${major}.0.0.0`, '.0.0.0'),
    platform: platform.hint,
    platformVersion: platform.hintVersion,
    architecture: platform.architecture,
    bitness: '64',
    model: '',
    mobile: false,
    wow64: false,
  }
  const brandList = hints.brands.map((one) => `"${one.brand}";v="${one.version}"`).join(', ')
  const language = languageHeader(0.9)
  const images = major < JXL_MAJOR_MIN ? 'image/avif' : 'image/jxl,image/avif'
  return {
    name,
    isChromium: true,
    connectionBefore: undefined,
    userAgent,
    languages: LANGUAGES,
    hints,
    platform: platform.navigator,
    viewport: platform.viewport,
    headersFor({ isTrustworthy, isHttp2, post }) {
      if (post !== undefined)
        return [
          ...(isTrustworthy ? [['sec-ch-ua-platform', `"${platform.hint}"`] as [string, string]] : []),
          ['User-Agent', userAgent],
          ...(isTrustworthy ? [['sec-ch-ua', brandList] as [string, string]] : []),
          ['Content-Type', post.contentType],
          ...(isTrustworthy ? [['sec-ch-ua-mobile', '?0'] as [string, string]] : []),
          ['Accept', '*/*'],
          ['Origin', post.origin],
          ...(isTrustworthy ? fetchHeaders(['Site', 'Mode', 'Dest'], 'cors') : []),
          ['Accept-Encoding', encodings(isTrustworthy)],
          ['Accept-Language', language],
          ['Cookie', ''],
          ...(isHttp2 === true ? [['Priority', 'u=1, i'] as [string, string]] : []),
        ]
      return [
        ...(isTrustworthy
          ? ([
              ['sec-ch-ua', brandList],
              ['sec-ch-ua-mobile', '?0'],
              ['sec-ch-ua-platform', `"${platform.hint}"`],
            ] as [string, string][])
          : []),
        ['Upgrade-Insecure-Requests', '1'],
        ['User-Agent', userAgent],
        [
          'Accept',
          `text/html,application/xhtml+xml,application/xml;q=0.9,${images},image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7`,
        ],
        ...(isTrustworthy ? fetchHeaders(['Site', 'Mode', 'User', 'Dest'], 'navigate') : []),
        ['Accept-Encoding', encodings(isTrustworthy)],
        ['Accept-Language', language],
        ['Cookie', ''],
        ...(isHttp2 === true ? [['Priority', 'u=0, i'] as [string, string]] : []),
      ]
    },
  }
}

function firefox(name: string, platform: Platform, agent: string): Profile {
  const userAgent = `Mozilla/5.0 (${agent}) Gecko/20100101 Firefox/${agent.slice(agent.lastIndexOf(':') + 1)}`
  return {
    name,
    isChromium: false,
    connectionBefore: ['Cookie', 'Upgrade-Insecure-Requests', 'Sec-Fetch-Dest', 'Priority'],
    userAgent,
    languages: LANGUAGES,
    hints: undefined,
    platform: platform.navigator,
    viewport: platform.viewport,
    headersFor: ({ isTrustworthy, isHttp2, post }) => [
      ['User-Agent', userAgent],
      ['Accept', post === undefined ? 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' : '*/*'],
      ['Accept-Language', languageHeader(0.5)],
      ['Accept-Encoding', encodings(isTrustworthy)],
      ...(post === undefined
        ? []
        : ([
            ['Content-Type', post.contentType],
            ['Origin', post.origin],
          ] as [string, string][])),
      ['Cookie', ''],
      ...(post === undefined ? [['Upgrade-Insecure-Requests', '1'] as [string, string]] : []),
      ...(isTrustworthy
        ? post === undefined
          ? fetchHeaders(['Dest', 'Mode', 'Site', 'User'], 'navigate')
          : fetchHeaders(['Dest', 'Mode', 'Site'], 'cors')
        : []),
      ['Priority', post === undefined ? 'u=0, i' : 'u=4'],
      ...(isHttp2 === true ? [['TE', 'trailers'] as [string, string]] : []),
    ],
  }
}

function safari(name: string, platform: Platform, version: string): Profile {
  const userAgent = `Mozilla/5.0 (${platform.agent}) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/${version} Safari/605.1.15`
  return {
    name,
    isChromium: false,
    connectionBefore: [],
    userAgent,
    languages: LANGUAGES,
    hints: undefined,
    platform: platform.navigator,
    viewport: platform.viewport,
    headersFor: ({ isTrustworthy, post }) => [
      ...(isTrustworthy ? fetchHeaders(['Dest'], post === undefined ? 'navigate' : 'cors') : []),
      ['User-Agent', userAgent],
      ['Accept', post === undefined ? 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' : '*/*'],
      ...(post === undefined
        ? []
        : ([
            ['Content-Type', post.contentType],
            ['Origin', post.origin],
          ] as [string, string][])),
      ...(isTrustworthy ? fetchHeaders(['Site', 'Mode'], post === undefined ? 'navigate' : 'cors') : []),
      ['Cookie', ''],
      ['Accept-Language', languageHeader(0.9)],
      ['Priority', post === undefined ? 'u=0, i' : 'u=3, i'],
      ['Accept-Encoding', isTrustworthy ? 'gzip, deflate, br' : 'gzip, deflate'],
    ],
  }
}

function languageHeader(quality: number): string {
  return LANGUAGES.map((one, i) => (i === 0 ? one : `${one};q=${quality}`)).join(',')
}

function encodings(isTrustworthy: boolean): string {
  return isTrustworthy ? 'gzip, deflate, br, zstd' : 'gzip, deflate'
}

const FETCH_VALUES = {
  navigate: { Site: 'none', Mode: 'navigate', User: '?1', Dest: 'document' },
  cors: { Site: 'same-origin', Mode: 'cors', User: '?1', Dest: 'empty' },
}

function fetchHeaders(names: readonly (keyof typeof FETCH_VALUES.navigate)[], kind: keyof typeof FETCH_VALUES) {
  return names.map((name): [string, string] => [`Sec-Fetch-${name}`, FETCH_VALUES[kind][name]])
}
