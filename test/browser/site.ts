/** A loopback site for browsers: pages by path, with a record of all requests. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Answer = string | ((request: IncomingMessage, response: ServerResponse) => void)

export interface Site extends AsyncDisposable {
  /** `http://127.0.0.1:PORT` */
  readonly url: string
  readonly port: number
  /** `METHOD /path` of each request, in order. */
  readonly asked: readonly string[]
  /** Resolves when this path has been requested. */
  wasAsked(path: string): Promise<void>
}

/** A string is HTML. Paths are looked up without their query; unknown ones are 404. */
export async function openSite(pages: Readonly<Record<string, Answer>>): Promise<Site> {
  const asked: string[] = []
  const waiting = new Map<string, () => void>()
  const server = createServer((request, response) => {
    const path = request.url!.split('?')[0]!
    asked.push(`${request.method} ${request.url}`)
    waiting.get(path)?.()
    const answer = pages[path]
    if (answer === undefined) response.writeHead(404, { 'content-type': 'text/html' }).end('<p>no such page')
    else if (typeof answer === 'string') response.setHeader('content-type', 'text/html; charset=utf-8').end(answer)
    else answer(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    asked,
    wasAsked(path) {
      if (asked.some((line) => line.split(' ')[1]!.split('?')[0] === path)) return Promise.resolve()
      return new Promise((resolve) => waiting.set(path, resolve))
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

export const redirect =
  (location: string): Answer =>
  (_request, response) =>
    void response.writeHead(302, { location }).end()

export const status =
  (code: number, headers: Record<string, string> = {}, body = ''): Answer =>
  (_request, response) =>
    void response.writeHead(code, headers).end(body)
