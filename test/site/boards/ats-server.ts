/** The server of the mocked employer boards: JSON in and out, statistics, and faults on request. On 127.0.0.1 only. */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface BoardRequest {
  method: string
  path: string
  query: URLSearchParams
  headers: IncomingMessage['headers']
  /** The parsed JSON of a POST. */
  body: unknown
}

export interface BoardAnswer {
  status?: number
  headers?: Record<string, string>
  /** Strings are sent as HTML, anything else as JSON. */
  body: unknown
}

/** A response to send instead of the board's own; undefined lets that through. `asked` counts requests for the path, from 1. */
export type Trouble = (request: BoardRequest, asked: number) => BoardAnswer | undefined

/** Options of every mocked board. */
export interface MockOptions {
  jobs: number
  trouble?: Trouble
  /** Titles have another field name, as after a redesign. */
  isRenamed?: boolean
  /** Lists contain invalid entries, and fields have unexpected types, except for the indispensable ones. */
  isOdd?: boolean
}

export interface BoardServer extends AsyncDisposable {
  /** Ends in "/". */
  url: string
  stats(): { requests: BoardRequest[]; maxInFlight: number }
}

const REQUEST_BYTES_MAX = 1_048_576

export async function startBoardServer(
  answer: (request: BoardRequest) => BoardAnswer,
  { trouble = () => undefined, isRenamed = false, isOdd = false }: Omit<MockOptions, 'jobs'> = {},
): Promise<BoardServer> {
  const requests: BoardRequest[] = []
  const askedOf = new Map<string, number>()
  let inFlight = 0
  let maxInFlight = 0
  const server = createServer(async (message, response) => {
    const url = new URL(message.url ?? '/', 'http://board')
    maxInFlight = Math.max(maxInFlight, ++inFlight)
    response.once('close', () => inFlight--)
    const body = await readJson(message)
    const request = {
      method: message.method ?? '',
      path: url.pathname,
      query: url.searchParams,
      headers: message.headers,
      body,
    }
    const { status = 200, headers = {}, body: content } = request.path === '/robots.txt' ? noRobots : reply(request)
    const isText = typeof content === 'string'
    response.writeHead(status, { 'content-type': isText ? 'text/html; charset=utf-8' : 'application/json', ...headers })
    response.end(isText ? content : JSON.stringify(content, isRenamed ? withoutTitle : isOdd ? odd : undefined))
  })

  function reply(request: BoardRequest): BoardAnswer {
    requests.push(request)
    const page = `${request.method} ${request.path}?${request.query} ${JSON.stringify(request.body)}`
    const asked = (askedOf.get(page) ?? 0) + 1
    askedOf.set(page, asked)
    return trouble(request, asked) ?? answer(request)
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    stats: () => ({ requests, maxInFlight }),
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      if (server.listening) await once(server, 'close')
    },
  }
}

/** `title`, and what other boards call it. */
const withoutTitle = (key: string, value: unknown) => (/^(?:title|text|name)$/.test(key) ? undefined : value)

const NEEDED =
  /^(?:id|title|text|name|absolute_url|hostedUrl|jobUrl|careers_url|url|shortcode|externalPath|nextPage|facetParameter|\d*)$/
const isObject = (value: unknown) => typeof value === 'object' && value !== null
const JUNK = [null, 17, 'entry', {}, { id: '../..', title: 'x', absolute_url: 'javascript:alert(1)' }]

function odd(key: string, value: unknown): unknown {
  if (Array.isArray(value)) return value.some(isObject) ? [...JUNK, ...value] : value
  return typeof value === 'string' && !NEEDED.test(key) ? { odd: true } : value
}

const noRobots: BoardAnswer = { status: 404, body: 'no rules here' }
export const notFound: BoardAnswer = { status: 404, body: { status: 404, error: 'Not found' } }

async function readJson(message: IncomingMessage): Promise<unknown> {
  let text = ''
  for await (const chunk of message) {
    text += String(chunk)
    if (text.length > REQUEST_BYTES_MAX) throw new RangeError('a request of more than 1 MiB')
  }
  return text === '' ? undefined : JSON.parse(text)
}

/** Every page fails twice before it succeeds: first with too many requests, then with a server error. */
export const flaky: Trouble = (_, asked) => {
  // Without Retry-After, which is never less than a second.
  if (asked === 1) return { status: 429, body: { message: 'slow down' } }
  return asked === 2 ? { status: 503, body: 'upstream failed' } : undefined
}

/** A challenge page instead of every page. */
export const blocked: Trouble = () => ({
  status: 403,
  headers: { server: 'cloudflare', 'cf-mitigated': 'challenge', 'cf-ray': '8f00ba4deadbeef0-FRA' },
  body: '<!doctype html><title>Just a moment...</title><script src="/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1"></script>',
})

/** Faults for some paths only. */
export const whenPath =
  (pattern: RegExp, trouble: Trouble): Trouble =>
  (request, asked) =>
    pattern.test(request.path) ? trouble(request, asked) : undefined
