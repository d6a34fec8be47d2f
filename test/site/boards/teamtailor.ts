/** A loopback Teamtailor: one RSS feed, with locations in their own namespace. */
import { escapeHtml } from '../html.ts'
import { type BoardAnswer, type BoardServer, type MockOptions, notFound, startBoardServer } from './ats-server.ts'

export interface TeamtailorOptions extends MockOptions {
  /** Only this many first characters of the feed arrive. */
  cutAt?: number
}

const DAY_MS = 86_400_000

const place = (city: string, country: string) =>
  `<tt:location><tt:name>${city} office</tt:name><tt:address>1 Road</tt:address><tt:zip>1</tt:zip><tt:city>${city}</tt:city><tt:country>${country}</tt:country></tt:location>`

/** The n-th item; higher numbers are older. */
function item(n: number, isRenamed: boolean): string {
  const places = n % 2 === 0 ? place('Stockholm', 'Sweden') + place('Oslo', 'Norway') : place('Malmö', 'Sweden')
  const description = `<p>Sell ${n % 5 === 0 ? 'boats' : 'cars'} &amp; more.</p>`
  return `<item>${isRenamed ? '' : `<title>${escapeHtml(`Sales & Service ${n}`)}</title>`}
    <description>${n % 2 === 0 ? `<![CDATA[${description}]]>` : escapeHtml(description)}</description>
    <pubDate>${new Date(Date.UTC(2026, 10, 10, 9) - n * DAY_MS).toUTCString().replace('GMT', '+0000')}</pubDate>
    <link>https://acme.teamtailor.com/jobs/${3000 + n}-sales-service</link>
    <remoteStatus>${['hybrid', 'fully', 'none', 'temporary'][n % 4]}</remoteStatus>
    <guid>uuid-${n}</guid><tt:locations>${places}</tt:locations>
    <tt:department>Sales</tt:department><tt:role>Account manager</tt:role></item>`
}

/** Its only board is at the root; other paths have none. */
export async function startTeamtailorMock(options: TeamtailorOptions): Promise<BoardServer> {
  const { jobs, isRenamed = false, cutAt } = options
  return await startBoardServer(({ path }): BoardAnswer => {
    if (path !== '/jobs.rss') return notFound
    const items = Array.from({ length: jobs }, (_, n) => item(n, isRenamed)).join('\n')
    const feed = `<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0" xmlns:tt="https://teamtailor.com/locations"><channel><title>Acme Boats</title><link>https://acme.teamtailor.com/</link>${items}</channel></rss>`
    return { headers: { 'content-type': 'application/rss+xml; charset=utf-8' }, body: feed.slice(0, cutAt) }
  }, options)
}
