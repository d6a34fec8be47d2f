/**
 * Signs several users in, walks the pages of each and downloads their reports:
 * `REPORTS_PASSWORDS=… bin/sluice run docs/examples/reports.ts --arg base=https://portal.example/ --arg users=alice,bob`.
 */
import { defineScraper } from 'sluice'
import * as z from 'zod'

/** Not an argument: arguments are kept in the record of the run. */
const passwords = JSON.parse(process.env['REPORTS_PASSWORDS'] ?? '{}') as Record<string, string>

export default defineScraper({
  name: 'reports',
  args: z.object({ base: z.url(), users: z.string().default('alice,bob') }),
  item: z.object({ user: z.string(), report: z.number(), url: z.url() }),
  key: ({ user, report }) => `${user} ${report}`,
  routes: {
    login: { match: '/login', fetch: 'browser' },
    reports: { match: '/reports', fetch: 'browser', browser: { waitFor: '#done', block: ['image', 'font', 'media'] } },
    summary: { match: '/summary', fetch: 'browser' },
  },
  start: ({ args, enqueue }) =>
    enqueue(
      'login',
      args.users.split(',').map((session) => ({ url: new URL('/login', args.base), session })),
    ),
  handlers: {
    async login({ page, session = '', args, keepLogin, enqueue }) {
      await page.type('#user', session)
      await page.type('#password', passwords[session] ?? '')
      await page.click('button')
      await page.waitForFunction(
        "location.pathname !== '/login' || document.querySelector('#error').textContent !== ''",
      )
      if (new URL(page.url()).pathname === '/login') throw new Error(`${session} cannot sign in`)
      await keepLogin() // every further page and file of this user is fetched with these cookies
      await enqueue('reports', new URL('/reports?page=1', args.base))
      await enqueue('summary', new URL('/summary', args.base))
    },
    async reports({ $, session = '', emit, file, enqueue }) {
      for (const row of $.all('li')) {
        const report = Number(row.attr('a.report', 'data-number'))
        const url = row.attr('a.report', 'href')
        await emit({ user: session, report, url })
        await file(url, { meta: { report } }) // downloaded later, by the file workers
      }
      await enqueue.links('reports', 'a.next')
    },
    async summary({ page }) {
      await page.click('button') // what the browser downloads is kept with the files
    },
  },
})
