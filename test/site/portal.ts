/**
 * A customer portal that needs a browser: users log in by script, each sees a list of reports that a script renders, and files
 * need the right cookie. It counts requests that mix up users.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface PortalOptions {
  port?: number
  /** Reports per user, and how many a page lists. */
  reports?: number
  perPage?: number
  fileBytes?: number
}

export interface Portal extends AsyncDisposable {
  readonly url: string
  /** Requests that carried one user's cookie and another user's token. */
  readonly crossed: number
  readonly logins: number
  readonly filesServed: number
}

export const passwordOf = (user: string) => `secret-${user}`

/** The bytes of a report: the same every time, different for each user and number. */
export function reportBytes(user: string, number: number, bytes: number): Buffer {
  const line = `${user},${number},${createHash('sha256').update(`${user} ${number}`).digest('hex')}\n`
  return Buffer.alloc(bytes, line)
}

export async function startPortal(options: PortalOptions = {}): Promise<Portal> {
  const { port = 0, reports = 5, perPage = 2, fileBytes = 20_000 } = options
  const sessions = new Map<string, string>()
  const counts = { crossed: 0, logins: 0, filesServed: 0 }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://portal')
    const user = sessions.get(/(?:^|;\s*)sid=(\w+)/.exec(request.headers.cookie ?? '')?.[1] ?? '')
    if (url.pathname === '/login') return html(response, LOGIN)
    if (url.pathname === '/api/login') return logIn(await bodyOf(request), response)
    if (url.pathname === '/reports') return html(response, user === undefined ? SIGNED_OUT : REPORTS)
    if (url.pathname === '/summary') return html(response, user === undefined ? SIGNED_OUT : SUMMARY)
    if (url.pathname === '/api/reports') {
      if (user === undefined) return send(response, 401, 'application/json', '{"error":"sign in first"}')
      if (request.headers.authorization !== `Bearer ${tokenOf(user)}`) counts.crossed++
      const page = Number(url.searchParams.get('page') ?? 1)
      const numbers = Array.from({ length: reports }, (_, i) => i + 1).slice((page - 1) * perPage, page * perPage)
      const body = { user, reports: numbers, next: page * perPage < reports ? page + 1 : null }
      return send(response, 200, 'application/json', JSON.stringify(body))
    }
    const [, owner, number] = /^\/files\/(\w+)-(\d+)\.csv$/.exec(url.pathname) ?? []
    if (owner === undefined) return send(response, 404, 'text/plain', 'no such page')
    if (owner !== user) return send(response, 403, 'text/plain', 'this report belongs to somebody else')
    counts.filesServed++
    response.setHeader('content-disposition', `attachment; filename="report ${number}.csv"`)
    send(response, 200, 'text/csv', reportBytes(owner, Number(number), fileBytes))
  }

  function logIn(text: string, response: ServerResponse): void {
    const { user, password } = JSON.parse(text) as { user: string; password: string }
    if (password !== passwordOf(user)) {
      send(response, 401, 'application/json', '{"error":"wrong password"}')
      return
    }
    counts.logins++
    const sid = createHash('sha256').update(`${user} ${counts.logins}`).digest('hex')
    sessions.set(sid, user)
    response.setHeader('set-cookie', `sid=${sid}; Path=/; HttpOnly`)
    send(response, 200, 'application/json', JSON.stringify({ token: tokenOf(user) }))
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error: Error) => send(response, 500, 'text/plain', error.message))
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    get crossed() {
      return counts.crossed
    },
    get logins() {
      return counts.logins
    },
    get filesServed() {
      return counts.filesServed
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const tokenOf = (user: string) => createHash('sha256').update(`token of ${user}`).digest('hex').slice(0, 16)

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

const html = (response: ServerResponse, body: string) => send(response, 200, 'text/html; charset=utf-8', body)

function send(response: ServerResponse, status: number, type: string, body: string | Buffer): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) })
  response.end(body)
}

const page = (title: string, body: string) =>
  `<!doctype html><html lang="en"><title>${title}</title><body><h1>${title}</h1>${body}</body></html>`

const SIGNED_OUT = page('Signed out', '<p id="done">Please <a href="/login">sign in</a>.</p>')

const LOGIN = page(
  'Sign in',
  `<form><input id="user"><input id="password" type="password"><button>Sign in</button><p id="error"></p></form><script>
  document.forms[0].addEventListener('submit', async (event) => {
    event.preventDefault()
    const body = JSON.stringify({ user: user.value, password: password.value })
    const answer = await fetch('/api/login', { method: 'POST', body })
    const { token, error } = await answer.json()
    if (!answer.ok) return (document.querySelector('#error').textContent = error)
    localStorage.setItem('token', token)
    location.href = '/reports?page=1'
  })</script>`,
)

const REPORTS = page(
  'Reports',
  `<ul></ul><script>
  const number = new URLSearchParams(location.search).get('page') ?? 1
  const headers = { authorization: 'Bearer ' + localStorage.getItem('token') }
  fetch('/api/reports?page=' + number, { headers }).then((answer) => answer.json()).then(({ user, reports, next }) => {
    for (const report of reports) {
      const item = document.createElement('li')
      item.innerHTML = '<a class="report" data-number="' + report + '">Report ' + report + '</a>'
      item.firstChild.href = '/files/' + user + '-' + report + '.csv'
      document.querySelector('ul').append(item)
    }
    const end = document.createElement('p')
    end.id = 'done'
    end.innerHTML = next === null ? 'That is all.' : '<a class="next" href="/reports?page=' + next + '">next</a>'
    document.body.append(end)
  })</script>`,
)

const SUMMARY = page(
  'Summary',
  `<button>Export</button><script>
  document.querySelector('button').addEventListener('click', () => {
    const link = document.createElement('a')
    link.href = URL.createObjectURL(new Blob(['summary of ' + localStorage.getItem('token')], { type: 'text/csv' }))
    link.download = 'summary.csv'
    link.click()
  })</script>`,
)
