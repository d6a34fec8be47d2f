/** Serves the demo site while a run scrapes it, so that a first run does not need a second terminal. */
import { connect } from 'node:net'
import { checkArgs } from '../../config/scraper-arguments.ts'
import type { Scraper } from '../../core/scraper.ts'
import type { DemoSite } from './demo-site.ts'
import { DEMO_URL } from './demo-url.ts'

/** Undefined when the run scrapes another site, or when the demo site is already being served (`sluice demo`). */
export async function demoSiteFor(scraper: Scraper, given: Record<string, unknown>): Promise<DemoSite | undefined> {
  if (siteOf(scraper, given) !== DEMO_URL || (await isServed())) return undefined
  const { startDemoSite } = await import('./demo-site.ts') // its web server would add 30 ms to the start of every other run
  return await startDemoSite()
}

function siteOf(scraper: Scraper, given: Record<string, unknown>): unknown {
  try {
    return (checkArgs(scraper, given) as { site?: unknown } | null)?.site
  } catch {
    return undefined // the run itself reports what is wrong with the arguments
  }
}

function isServed(): Promise<boolean> {
  const { hostname, port } = new URL(DEMO_URL)
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname)
    const answer = (isOpen: boolean) => {
      socket.destroy()
      resolve(isOpen)
    }
    socket.once('connect', () => answer(true)).once('error', () => answer(false))
  })
}
