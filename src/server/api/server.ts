/**
 * The HTTP side of the API: checks the caller and the request, calls the handler, and reports every failure as a problem. Secrets
 * in responses are masked unless a handler marks them as `verbatim`.
 */
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { optionalPackage } from '../../core/optional-package.ts'
import { redactAll } from '../../core/redact.ts'
import type { Role } from '../../core/role.ts'
import { type CallerParts, isStillAllowed, type KnownCaller, knownCaller, socketAddressOf, tooMany } from './caller.ts'
import { noRoute } from './no-route.ts'
import { OpenStreams } from './open-streams.ts'
import { invalid, Problem, toProblem } from './problem.ts'
import { type Answered, type Asked, type Endpoint, isStreamed } from './routes/endpoint.ts'
import { ENDPOINTS, type EndpointName, type Endpoints } from './routes/endpoints.ts'

const { default: Fastify } = await optionalPackage('the API server needs', 'fastify', () => import('fastify'))

export interface StreamedAnswer {
  contentType: string
  body: AsyncIterable<string | Uint8Array>
  headers?: Readonly<Record<string, string>>
}

type AnswerOf<E extends Endpoint> = E['answer'] extends { contentTypes: readonly string[] }
  ? StreamedAnswer | undefined
  : Answered<E>

/** One function per endpoint of an area, typed by its input and output. Undefined means a stream without further events. */
export type HandlersOf<E extends Readonly<Record<string, Endpoint>>> = {
  [K in keyof E]: (asked: Asked<E[K]>, caller: Caller) => Promise<AnswerOf<E[K]>>
}

export type Handlers = HandlersOf<Endpoints>

interface Caller {
  /** For the audit log and rate limits: the key's name, or the address. */
  readonly name: string
  readonly role: Role | undefined
  /** Identifies the caller; names may not be unique. */
  readonly scope: string
  /** The last event the client of an event stream has seen. */
  readonly lastEventId: string | undefined
  /** Aborted when the caller hangs up. */
  readonly signal: AbortSignal
}

export interface ApiParts extends CallerParts {
  handlers: Handlers
  /** First answers, for repeats with the same idempotency key. */
  remembered: Remembered
  /** Milliseconds until the caller with this scope may make another request; 0: now. */
  throttle(scope: string): number
  /** How long a request may take to arrive, to its last byte. Default 30 s. */
  requestMsMax?: number
  /** Called for every action other than a read, once it is answered or its caller has hung up (status 499). */
  onAction?: (entry: Action & { detail: object }) => void
  /** Called for every refused request: no key, missing role, too many requests. */
  onRefused?: (entry: Action) => void
  /** Called with the duration of each answer; for streams, until the first byte. */
  onAnswer?: (ms: number, status: number) => void
  onFault?: (error: unknown, route: string) => void
}

export interface Action {
  caller: string
  role: string
  address: string
  /** `POST /v1/runs` */
  action: string
  status: number
}

/** First answers by idempotency key. */
interface Remembered {
  /** Undefined: this is the first request, so proceed. Otherwise the first answer, or why there is none to give. */
  begin(key: string, fingerprint: string): Promise<{ status: number; body: string } | 'busy' | 'other' | undefined>
  end(key: string, answer: { status: number; body: string } | undefined): Promise<void>
}

const REFUSED: ReadonlySet<number> = new Set([401, 403, 429])
/** The caller hung up: the status that proxies log for it. */
const HUNG_UP = 499
const BODY_BYTES_MAX = 1024 * 1024
const REQUEST_MS_MAX = 30_000
/** By default Node checks for late requests every 30 s, and allows 60 s for headers. */
const LATE_LOOKS_PER_DEADLINE = 10
/** An item's key is part of a path, and often a URL. */
const PARAM_CHARACTERS_MAX = 6000

const SECURITY_HEADERS = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cache-control': 'no-store',
} as const

export function createApi(parts: ApiParts): FastifyInstance {
  const requestMsMax = parts.requestMsMax ?? REQUEST_MS_MAX
  const streams = new OpenStreams()
  const app = Fastify({
    bodyLimit: BODY_BYTES_MAX,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: PARAM_CHARACTERS_MAX },
    forceCloseConnections: true,
    requestTimeout: requestMsMax,
    http: { headersTimeout: requestMsMax, connectionsCheckingInterval: requestMsMax / LATE_LOOKS_PER_DEADLINE },
    frameworkErrors: (error, _, reply) => void sendProblem(reply, toProblem(fromFastify(error))),
  })
  const begunAtMs = new WeakMap<FastifyRequest, number>()
  app.addHook('onRequest', async (request, reply) => {
    begunAtMs.set(request, performance.now())
    reply.headers(SECURITY_HEADERS)
  })
  app.addHook('onSend', async (request, reply) =>
    parts.onAnswer?.(performance.now() - (begunAtMs.get(request) ?? performance.now()), reply.statusCode),
  )
  app.setNotFoundHandler((request, reply) => sendProblem(reply, noRoute(request.method, pathOf(request))))
  app.setErrorHandler((error, request, reply) => {
    const problem = toProblem(fromFastify(error))
    if (problem.body.status === 500) parts.onFault?.(error, `${request.method} ${pathOf(request)}`)
    return sendProblem(reply, problem)
  })
  for (const [name, one] of Object.entries(ENDPOINTS) as [EndpointName, Endpoint][])
    app.route({
      method: one.method,
      url: one.path,
      handler: (request, reply) =>
        answer({ ...parts, streams }, name, one, request, reply).catch((error) => {
          if (error instanceof Problem && REFUSED.has(error.body.status)) reportRefusal(parts, one, request, error)
          throw error
        }),
    })
  return app
}

async function answer(
  parts: ApiParts & { streams: OpenStreams },
  name: EndpointName,
  one: Endpoint,
  request: FastifyRequest,
  reply: FastifyReply,
) {
  const caller = await callerOf(parts, one, request, reply)
  // Probes have no role and are never throttled: otherwise others behind the same address could make them fail.
  const waitMs = one.role === undefined ? 0 : parts.throttle(caller.scope)
  if (waitMs > 0) throw tooMany(waitMs, 'the caller exceeds its rate limit')
  const asked = {
    params: parsed('path', one.params, request.params),
    query: parsed('query', one.query, request.query),
    body: parsed('body', one.body, request.body ?? undefined),
  }
  if (one.method !== 'GET') reportAction(parts, one, caller, request, reply)
  const handle = parts.handlers[name] as (asked: unknown, caller: Caller) => Promise<unknown>
  const key = one.isIdempotentByKey ? keyOf(request, caller) : undefined
  if (key !== undefined) return await answerOnce(parts, one, key, request, reply, () => handle(asked, caller))
  if (isStreamed(one.answer)) holdStream(parts, one, caller, request, reply)
  const result = await handle(asked, caller)
  if (isStreamed(one.answer)) return sendStream(reply, result as StreamedAnswer | undefined)
  return reply.code(one.status ?? 200).send(redactAll(result))
}

function holdStream(
  parts: ApiParts & { streams: OpenStreams },
  { role, answer: kind }: Endpoint,
  { scope }: Caller,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  if (role === undefined || !isStreamed(kind)) return
  parts.streams.add(reply.raw, {
    scope,
    isCounted: kind.contentTypes.includes('text/event-stream'),
    isStillAllowed: () => isStillAllowed(parts, role, request, scope),
  })
}

/** Callers with a valid key that lacked the role or exceeded the rate limit. */
const callers = new WeakMap<FastifyRequest, KnownCaller>()

function reportRefusal(
  { onRefused, addressOf }: ApiParts,
  { method, path }: Endpoint,
  request: FastifyRequest,
  { body }: Problem,
) {
  const address = addressOf(request.headers, socketAddressOf(request))
  const { name, role } = callers.get(request) ?? { name: address, role: 'none' }
  onRefused?.({ caller: name, role, address, action: `${method} ${path}`, status: body.status })
}

function reportAction(
  { onAction, addressOf }: ApiParts,
  { method, path }: Endpoint,
  caller: Caller,
  request: FastifyRequest,
  reply: FastifyReply,
) {
  if (onAction === undefined) return
  const address = addressOf(request.headers, socketAddressOf(request)) // now: a closed socket has none
  const detail = { params: request.params, query: request.query, body: request.body ?? null }
  const report = () =>
    onAction({
      caller: caller.name,
      role: caller.role ?? 'none',
      address,
      action: `${method} ${path}`,
      detail,
      status: reply.raw.writableFinished ? reply.statusCode : HUNG_UP,
    })
  // Not 'finish', which never fires when the caller hangs up: the action is carried out anyway.
  if (caller.signal.aborted) report()
  else reply.raw.once('close', report)
}

/** Carries out the same request only once, even if the first answer was lost on the way. */
async function answerOnce(
  { remembered }: ApiParts,
  one: Endpoint,
  key: string,
  request: FastifyRequest,
  reply: FastifyReply,
  handle: () => Promise<unknown>,
) {
  const first = await remembered.begin(key, JSON.stringify([one.method, one.path, request.params, request.body]))
  if (first === 'busy') throw new Problem(409, 'E_IDEMPOTENCY_BUSY', 'the first request with this key is still running')
  if (first === 'other')
    throw new Problem(422, 'E_IDEMPOTENCY_OTHER', 'this key was used for another request', { hint: 'Use a new key.' })
  if (first !== undefined)
    return reply.code(first.status).header('idempotent-replayed', 'true').type('application/json').send(first.body)
  try {
    const status = one.status ?? 200
    const body = JSON.stringify(redactAll(await handle()))
    await remembered.end(key, { status, body })
    return reply.code(status).type('application/json').send(body)
  } catch (error) {
    await remembered.end(key, undefined)
    throw error
  }
}

async function callerOf(parts: ApiParts, one: Endpoint, request: FastifyRequest, reply: FastifyReply): Promise<Caller> {
  const hangUp = new AbortController()
  reply.raw.once('close', () => hangUp.abort())
  const asked = { lastEventId: request.headers['last-event-id']?.toString(), signal: hangUp.signal }
  const { role } = one
  if (role === undefined)
    return { name: parts.addressOf(request.headers, socketAddressOf(request)), role, scope: '', ...asked }
  return { ...(await knownCaller(parts, { ...one, role }, request, (known) => callers.set(request, known))), ...asked }
}

function parsed(where: string, schema: Endpoint['body'], given: unknown): unknown {
  if (schema === undefined) return undefined
  const problem = unusable(given)
  if (problem !== undefined) throw new Problem(400, 'E_REQUEST', `the ${where} ${problem}`)
  const result = schema.safeParse(given)
  if (result.success) return result.data
  throw invalid(where, result.error)
}

const DEPTH_MAX = 64

/** Databases accept no NUL in text, and unbounded nesting would overflow the stack of any code that reads it. */
function unusable(value: unknown, depth = 0): string | undefined {
  if (typeof value === 'string') return value.includes('\u0000') ? 'has a NUL character in it' : undefined
  if (typeof value !== 'object' || value === null) return undefined
  if (depth === DEPTH_MAX) return `is nested deeper than ${DEPTH_MAX} levels`
  for (const [name, inner] of Object.entries(value)) {
    const problem = unusable(name) ?? unusable(inner, depth + 1)
    if (problem !== undefined) return problem
  }
  return undefined
}

function keyOf(request: FastifyRequest, caller: Caller): string | undefined {
  const given = request.headers['idempotency-key']
  if (given === undefined) return undefined
  if (typeof given !== 'string' || given === '' || given.length > 200)
    throw new Problem(400, 'E_REQUEST', 'Idempotency-Key must have 1 to 200 characters')
  return JSON.stringify([caller.scope, given]) // with a plain separator, the keys of two callers could collide
}

function sendStream(reply: FastifyReply, answered: StreamedAnswer | undefined) {
  if (answered === undefined) return reply.code(204).send()
  const { contentType, headers = {}, body } = answered
  return reply.headers(headers).type(contentType).send(Readable.from(body))
}

function sendProblem(reply: FastifyReply, { body, headers }: Problem) {
  return reply
    .code(body.status)
    .headers(headers)
    .type('application/problem+json')
    .send(JSON.stringify(redactAll(body)))
}

/** Requests that Fastify itself refuses: a body that is not JSON, too large, or of another type. */
function fromFastify(error: unknown): unknown {
  const { statusCode, code, message } = error as { statusCode?: number; code?: string; message?: string }
  // The caller hung up or took too long: no one will see the answer.
  if (code === 'ECONNRESET' || code === 'ECONNABORTED') return new Problem(400, 'E_REQUEST', 'the request broke off')
  if (!code?.startsWith('FST_') || statusCode === undefined || statusCode >= 500) return error
  return new Problem(statusCode, 'E_REQUEST', message ?? 'not a usable request', {
    hint: 'Send JSON with content-type application/json.',
  })
}

const pathOf = (request: FastifyRequest) => request.url.split('?')[0]!.slice(0, 200)
