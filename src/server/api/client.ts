/** A typed API client: one method per endpoint, checked against the same schemas the server uses. */

import type { ProblemBody } from './problem.ts'
import { type Answered, type Asking, type Endpoint, isStreamed } from './routes/endpoint.ts'
import { ENDPOINTS, type EndpointName, type Endpoints } from './routes/endpoints.ts'

/** Which server to call, and with which key. */
export interface ClientOptions {
  /** `http://127.0.0.1:7700` */
  url: string
  key?: string
  fetch?: typeof fetch
}

/** Options for one request. */
export interface CallOptions {
  idempotencyKey?: string
  signal?: AbortSignal
}

type AnswerOf<E extends Endpoint> = E['answer'] extends { contentTypes: readonly string[] } ? Response : Answered<E>

type Ask<E extends Endpoint> =
  // biome-ignore lint/complexity/noBannedTypes: an endpoint that takes nothing is called with nothing
  {} extends Asking<E>
    ? (asking?: Asking<E>, options?: CallOptions) => Promise<AnswerOf<E>>
    : (asking: Asking<E>, options?: CallOptions) => Promise<AnswerOf<E>>

/** Streams are returned as the `Response` itself: read its body. */
export type Client = { [K in EndpointName]: Ask<Endpoints[K]> }

/** An error response from the server. */
export class ApiError extends Error {
  readonly status: number
  readonly problem: ProblemBody

  constructor(problem: ProblemBody) {
    super(`${problem.code}: ${problem.detail}`)
    this.status = problem.status
    this.problem = problem
  }
}

/** Creates a typed client with one method per endpoint. */
export function createClient(options: ClientOptions): Client {
  const calls = Object.entries(ENDPOINTS).map(([name, one]) => [
    name,
    (asking: Parts = {}, call: CallOptions = {}) => ask(options, one, asking, call),
  ])
  return Object.fromEntries(calls) as Client
}

interface Parts {
  params?: Record<string, unknown>
  query?: Record<string, unknown>
  body?: unknown
}

async function ask({ url, key, fetch: send = fetch }: ClientOptions, one: Endpoint, parts: Parts, call: CallOptions) {
  const path = one.path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(parts.params?.[name])))
  const target = new URL(path, url)
  for (const [name, value] of Object.entries(parts.query ?? {}))
    if (value !== undefined) target.searchParams.set(name, String(value))
  const response = await send(target, {
    method: one.method,
    headers: {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(one.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(call.idempotencyKey === undefined ? {} : { 'idempotency-key': call.idempotencyKey }),
    },
    ...(one.body === undefined ? {} : { body: JSON.stringify(parts.body ?? {}) }),
    ...(call.signal === undefined ? {} : { signal: call.signal }),
  })
  if (!response.ok) throw new ApiError(await problemOf(response))
  if (isStreamed(one.answer)) return response
  return one.answer === undefined ? undefined : await response.json()
}

/** Something in between, such as a proxy, may answer in its own format. */
async function problemOf(response: Response): Promise<ProblemBody> {
  const text = await response.text()
  try {
    const problem = JSON.parse(text) as ProblemBody
    if (typeof problem.code === 'string') return problem
  } catch {
    // not one of our problem documents
  }
  const { status, statusText } = response
  return { type: 'about:blank', title: statusText, status, detail: text.slice(0, 500), code: 'E_NOT_OURS' }
}
