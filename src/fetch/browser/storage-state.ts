/** Saves and restores a signed-in session: the cookies and local storage of a context. */
import type { CookieData, Frame } from 'puppeteer-core'
import type { OriginStorage, SessionCookie, SessionState } from '../../core/session-state.ts'
import type { OpenPage } from './open-page.ts'

const READ = `JSON.stringify(Object.entries(localStorage))`

export async function restoreState({ driver, context }: OpenPage, state: SessionState): Promise<void> {
  const cookies = state.cookies.map(({ expires, ...cookie }): CookieData => {
    return expires < 0 ? cookie : { ...cookie, expires }
  })
  const origins = state.origins.filter(({ localStorage }) => localStorage.length > 0)
  await Promise.all([
    cookies.length === 0 ? undefined : context.setCookie(...cookies),
    ...origins.map(({ origin, localStorage }) => driver.evaluateOnNewDocument(restoreScript(origin, localStorage))),
  ])
}

/**
 * Runs before every document of the page. It writes only if the storage is still empty: a context starts empty, so this is the
 * first document of its origin, and values that the site writes later are never overwritten.
 */
function restoreScript(origin: string, items: OriginStorage['localStorage']): string {
  return `(() => {
    if (location.origin !== ${JSON.stringify(origin)}) return
    try {
      if (localStorage.length === 0) for (const { name, value } of ${JSON.stringify(items)}) localStorage.setItem(name, value)
    } catch {}
  })()`
}

/** The current state. Origins the page has left are read in a helper page, which sends no requests. */
export async function readState(page: OpenPage): Promise<SessionState> {
  const found = new Map<string, OriginStorage['localStorage']>()
  for (const frame of page.driver.frames()) {
    const origin = originOf(frame)
    if (origin !== undefined && !found.has(origin)) {
      const items = await readStorage(frame).catch(() => undefined)
      if (items !== undefined) found.set(origin, items)
    }
  }
  const left = [...page.origins].filter((origin) => !found.has(origin))
  if (left.length > 0) await readLeft(page, left, found)
  const cookies = (await page.context.cookies()).map(toSessionCookie)
  const origins = [...found].filter(([, items]) => items.length > 0)
  return { cookies, origins: origins.map(([origin, localStorage]) => ({ origin, localStorage })) }
}

async function readLeft(
  { context }: OpenPage,
  origins: readonly string[],
  found: Map<string, OriginStorage['localStorage']>,
): Promise<void> {
  const helper = await context.newPage()
  try {
    const session = await helper.createCDPSession()
    session.on('Fetch.requestPaused', ({ requestId }) => {
      const answer = { requestId, responseCode: 200, responseHeaders: [{ name: 'content-type', value: 'text/html' }] }
      session.send('Fetch.fulfillRequest', { ...answer, body: '' }).catch(() => {})
    })
    await session.send('Fetch.enable', { patterns: [{ urlPattern: '*' }] })
    for (const origin of origins) {
      await helper.goto(`${origin}/`)
      found.set(origin, await readStorage(helper.mainFrame()))
    }
  } finally {
    await helper.close()
  }
}

async function readStorage(frame: Frame): Promise<OriginStorage['localStorage']> {
  const entries = JSON.parse((await frame.evaluate(READ)) as string) as [string, string][]
  return entries.map(([name, value]) => ({ name: String(name), value: String(value) }))
}

function originOf(frame: Frame): string | undefined {
  const url = URL.parse(frame.url())
  return url !== null && /^https?:$/.test(url.protocol) ? url.origin : undefined
}

function toSessionCookie(cookie: CookieData & { session?: boolean }): SessionCookie {
  const { name, value, domain, path = '/', expires = -1, httpOnly = false, secure = false, sameSite } = cookie
  const isKnown = sameSite === 'Strict' || sameSite === 'Lax' || sameSite === 'None'
  return { name, value, domain, path, expires, httpOnly, secure, ...(isKnown ? { sameSite } : {}) }
}
