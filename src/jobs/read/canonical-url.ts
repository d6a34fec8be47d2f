/** One canonical spelling of a posting's URL, so that equal URLs compare as equal. */
import { normaliseUrl } from '../../core/url.ts'

/** Parameters that say where a visitor came from, on any site. */
const TRACKING = new Set(['gh_src', 'lever-source', 'lever-origin', 'trk', 'refid', 'trackingid', 'ashby_jid_source'])
/** Elsewhere these may identify a job (`?position=17`), so they are removed only on their own board. */
const TRACKING_OF: readonly (readonly [RegExp, ReadonlySet<string>])[] = [
  [/(?:^|\.)linkedin\.com$/, new Set(['position', 'pagenum', 'originalsubdomain', 'origin'])],
  [
    /(?:^|\.)indeed\.[a-z.]{2,6}$/,
    new Set(['from', 'vjs', 'tk', 'advn', 'adid', 'sjdu', 'acatk', 'pub', 'camk', 'xkcb']),
  ],
]

/** Lower-case host; no fragment, default port or tracking parameters; the others sorted. Null if it is not a web URL. */
export function canonicalUrl(input: string): string | null {
  let url: URL
  try {
    url = new URL(normaliseUrl(input.trim()))
  } catch {
    return null
  }
  if (url.search === '') return url.href
  const ofHost = TRACKING_OF.find(([host]) => host.test(url.hostname))?.[1]
  for (const [name, value] of [...url.searchParams]) {
    const key = name.toLowerCase()
    // A career page that embeds Greenhouse identifies the job by this parameter, unless the path contains it too.
    const isRepeated = key === 'gh_jid' && value !== '' && url.pathname.split('/').includes(value)
    if (TRACKING.has(key) || ofHost?.has(key) || isRepeated) url.searchParams.delete(name)
  }
  return url.href
}
