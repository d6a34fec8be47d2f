/** What the big boards show instead of a page, and a loopback board that shows it on request. */
import { type Answer, openSite, redirect, type Site, status } from '../../browser/site.ts'

const HTML = { 'content-type': 'text/html; charset=utf-8' }
const JSON_TYPE = { 'content-type': 'application/json' }

const page = (code: number, title: string, text: string): Answer =>
  status(code, HTML, `<!doctype html><html><head><title>${title}</title></head><body><p>${text}</p></body></html>`)
const forbidden = (errorCode: string): Answer => status(403, JSON_TYPE, JSON.stringify({ error_code: errorCode }))

const WALLS = {
  rateLimit: status(429, { 'retry-after': '1' }, 'too many requests'),
  serverError: status(502, HTML, '<h1>502 Bad Gateway</h1>'),
  /** LinkedIn. */
  status999: status(999, HTML, '<html><head><title>999</title></head><body></body></html>'),
  authwall: redirect('/authwall?trk=qf&original_referer=&sessionRedirect=x'),
  /** Indeed. */
  securityCheck: page(403, 'Security Check - Indeed.com', 'Additional Verification Required'),
  botDetection: redirect('/account/login?from=bot-detection'),
  /** ZipRecruiter. */
  wafForbidden: forbidden('forbidden cf-waf'),
  geoblocked: forbidden('geoblocked-gdpr'),
  /** Glassdoor, also with status 200. */
  helpUsProtect: page(403, 'Security | Glassdoor', 'Help Us Protect Glassdoor. Please verify that you are human.'),
  helpUsProtectQuietly: page(200, 'Security | Glassdoor', 'Help Us Protect Glassdoor. Please verify you are human.'),
  /** Google. */
  sorry: redirect('/sorry/index?continue=x'),
  consent: redirect('/consent.google.com/ml?continue=x'),
  enableJs: status(
    200,
    HTML,
    '<!doctype html><html><head><title>Google Search</title><noscript><meta content="0;url=/httpservice/retry/enablejs?sei=x" http-equiv="refresh"></noscript></head><body></body></html>',
  ),
} as const satisfies Record<string, Answer>

export type Wall = keyof typeof WALLS

/** Targets of the walls that are redirects. */
const WALL_PAGES: Readonly<Record<string, Answer>> = {
  '/authwall': page(200, 'Sign Up | LinkedIn', 'Join LinkedIn to see more jobs.'),
  '/account/login': page(200, 'Sign In | Indeed', 'Ready to take the next step? Create an account or sign in.'),
  '/sorry/index': page(
    429,
    'https://www.google.com/search',
    '<form id="captcha-form" action="index" method="post"><div class="g-recaptcha"></div></form>Our systems have detected unusual traffic from your computer network.',
  ),
  '/consent.google.com/ml': page(200, 'Before you continue', 'Before you continue to Google'),
}

export interface BoardOptions {
  /** Number of postings. */
  jobs: number
  /** The wall instead of the n-th page (from 1; robots.txt does not count), or from the n-th on with `stays`. */
  wall?: { at: number; is: Wall; stays?: boolean }
  /** Text of robots.txt; undefined: 404. */
  robots?: string
  /** Pages have another layout, as after a redesign. */
  isRedesigned?: boolean
}

/** A board that shows `pages`, and its walls as configured. */
export async function openBoard(pages: Readonly<Record<string, Answer>>, options: BoardOptions): Promise<Site> {
  const { wall, robots } = options
  let asked = 0
  const guarded = Object.entries(pages).map(([path, answer]): [string, Answer] => [
    path,
    (request, response) => {
      asked++
      const isWall = wall !== undefined && (wall.stays ? asked >= wall.at : asked === wall.at)
      const given: Answer = isWall ? WALLS[wall.is] : answer
      if (typeof given === 'string') response.setHeader('content-type', HTML['content-type']).end(given)
      else given(request, response)
    },
  ])
  return await openSite({
    ...WALL_PAGES,
    ...(robots === undefined ? {} : { '/robots.txt': status(200, { 'content-type': 'text/plain' }, robots) }),
    ...Object.fromEntries(guarded),
  })
}

/** The query of each request to this path, in order. */
export function queriesOf({ asked }: Pick<Site, 'asked'>, path: string): URLSearchParams[] {
  return asked
    .map((line) => new URL(line.split(' ')[1]!, 'http://board'))
    .filter((url) => url.pathname === path)
    .map((url) => url.searchParams)
}
