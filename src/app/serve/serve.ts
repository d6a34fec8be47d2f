/** `sluice serve`: the API of a server, on SQLite by default or on a fleet's queue. */
import type { AddressInfo } from 'node:net'
import { ScrapeError } from '../../core/errors.ts'
import { redactValue } from '../../core/redact.ts'
import { Audit, type AuditEntry } from '../../server/access/audit.ts'
import { FirstAnswers } from '../../server/access/first-answers.ts'
import { ApiKeys } from '../../server/access/keys.ts'
import { leaderSeen, SCHEDULER } from '../../server/access/leader.ts'
import { BoundedRefusals } from '../../server/access/refusals.ts'
import { DOCS_POLICY, docsPage } from '../../server/api/docs-page.ts'
import { openApiDocument } from '../../server/api/openapi.ts'
import { ENDPOINTS } from '../../server/api/routes/endpoints.ts'
import { createApi } from '../../server/api/server.ts'
import { openGate } from './access/identify.ts'
import { createThrottle } from './access/request-throttle.ts'
import { handlersOf } from './handlers/handlers.ts'
import { type ServeOptions, Server } from './server/server.ts'
import { answerForHealthOnly } from './server/server-role.ts'

interface RunningServer extends AsyncDisposable {
  readonly url: string
}

/** Resolves once it is listening. Throws `E_OPTION` for an address that others can reach if there is no key. */
export async function serve(options: ServeOptions): Promise<RunningServer> {
  const { config, host, port, version, say } = options
  await using opening = new AsyncDisposableStack()
  const server = opening.use(await Server.open(options))
  const audit = new Audit(server.db)
  const writeDown = (entry: AuditEntry) =>
    void audit.add(entry).catch((error: Error) => say('warn', `not in the audit log: ${error.message}`))
  const refusals = opening.use(new BoundedRefusals({ write: writeDown }))
  const { isLoopbackFree, proxies } = options
  const keys = new ApiKeys(server.db)
  const gate = await openGate({ keys, host, isLoopbackFree, proxies, say: (message) => say('info', message) })
  const app = createApi({
    handlers: handlersOf(server),
    identify: gate.identify,
    addressOf: (headers, socketAddress) => proxies.clientAddress(headers, socketAddress),
    remembered: new FirstAnswers(server.db),
    throttle: createThrottle({ perSecond: options.requestsPerSecond }),
    onAction: (entry) => writeDown({ ...entry, detail: JSON.stringify(redactValue(entry.detail)) }),
    onRefused: (entry) => refusals.add(entry),
    onAnswer: (ms, status) => server.health.onAnswer(ms, status),
    onFault: (error, route) =>
      say('warn', `${route}: ${error instanceof Error ? (error.stack ?? error.message) : error}`),
  })
  if (options.role === 'scheduler') answerForHealthOnly(app)
  const document = JSON.stringify(openApiDocument(ENDPOINTS, version))
  app.get('/openapi.json', (_, reply) => reply.type('application/json').send(document))
  const page = docsPage(ENDPOINTS, version)
  app.get('/docs', (_, reply) =>
    reply.header('content-security-policy', DOCS_POLICY).type('text/html; charset=utf-8').send(page),
  )
  opening.defer(() => app.close())
  await app.listen({ host, port }).catch((cause: Error) => {
    throw new ScrapeError('E_OPTION', `cannot listen on ${host}:${port}: ${cause.message}`, {
      cause,
      fix: 'Choose another port with --port, or stop what listens there.',
    })
  })
  const address = app.server.address() as AddressInfo
  const parts = opening.move()
  if (options.role === 'api' && !(await leaderSeen(server.db, SCHEDULER)).isThere) say('warn', NO_SCHEDULER)
  say('info', gate.rule)
  say('info', `runs under ${config.values.out}, store ${server.store.place}`)
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`,
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  }
}

const NO_SCHEDULER =
  'no scheduler is there yet: schedules, webhooks, history and retention wait for a `sluice serve --role scheduler` on this queue'
