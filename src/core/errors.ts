/**
 * The one family of errors. A code says what happened, its verdict says what to do, and the table below is all there is to
 * know about each: `sluice explain`, docs/reference/errors.md and the retry manager read it.
 */

/** retry: again after a backoff · rotate: again with another session · later: again, costs no try · drop: give up on this task · halt: stop the run. */
export type Verdict = 'retry' | 'rotate' | 'later' | 'drop' | 'halt'

export interface ErrorKind {
  /** Groups errors in metrics, dead letters and `retry --class`. */
  readonly class: string
  readonly verdict: Verdict
  readonly what: string
  readonly why: string
  readonly fix: string
  /** Tries in all for this code, when fewer than the run's `retries` + 1 make sense. */
  readonly triesMax?: number
}

const kind = (cls: string, verdict: Verdict, what: string, why: string, fix: string, triesMax?: number): ErrorKind => ({
  class: cls,
  verdict,
  what,
  why,
  fix,
  ...(triesMax === undefined ? {} : { triesMax }),
})

export const ERRORS = {
  E_TIMEOUT_CONNECT: kind(
    'timeout',
    'retry',
    'no connection within the connect timeout',
    'The server is down, far away, or drops packets from here.',
    'Open the URL in a browser from this machine; raise `limits.timeout` if the server is merely slow.',
  ),
  E_TIMEOUT_HEADERS: kind(
    'timeout',
    'retry',
    'no response headers within the timeout',
    'The server accepted the request and stayed silent.',
    'Lower `--concurrency` or `--rps`; raise `limits.timeout` if the site is slow by nature.',
  ),
  E_TIMEOUT_BODY: kind(
    'timeout',
    'retry',
    'the body stopped arriving',
    'The server or a proxy on the way stalled in the middle of the page.',
    'Usually passes by itself; if not, lower `--concurrency`.',
  ),
  E_TIMEOUT_TOTAL: kind(
    'timeout',
    'retry',
    'the whole exchange took longer than its deadline',
    'A slow page, a slow redirect chain, or a server that drips bytes.',
    'Raise `limits.timeout`.',
  ),
  E_CONNECTION: kind(
    'connection',
    'retry',
    'the connection failed or was cut',
    'The server refused or reset it.',
    'Check that the host and port are right and that something listens there.',
  ),
  E_PROTOCOL: kind(
    'connection',
    'retry',
    'the answer is not valid HTTP',
    'A broken server or a proxy that mangles answers.',
    'Look at it with `curl -v`; no retry will mend a server that always answers like this.',
    2,
  ),
  E_BODY_SHORT: kind(
    'connection',
    'retry',
    'the body ended before its announced length',
    'The connection was cut in the middle of the page.',
    'Usually passes by itself. A short page is never treated as a page.',
  ),
  E_TLS: kind(
    'tls',
    'drop',
    'the TLS certificate or handshake is not acceptable',
    'An expired, self-signed or foreign certificate, or plain text on a TLS port.',
    'Mend the certificate; for your own test server name its authority in NODE_EXTRA_CA_CERTS.',
  ),
  E_DNS: kind(
    'dns',
    'retry',
    'the host name does not resolve',
    'A typo, or the resolver is unreachable.',
    'Check the spelling and try `getent hosts NAME`.',
  ),
  E_UNAUTHORIZED: kind(
    'forbidden',
    'drop',
    'the page wants a login (401)',
    'The server needs credentials we do not send.',
    'Give the route headers with the credentials, or leave the page out.',
  ),
  E_FORBIDDEN: kind(
    'forbidden',
    'rotate',
    'the server refuses the page (403)',
    'The page is private, or the server does not want this client.',
    'Slow down, identify yourself in the user agent, or ask the site owner.',
  ),
  E_NOT_FOUND: kind(
    'not-found',
    'drop',
    'there is no such page (404 or 410)',
    'The link is dead.',
    'Nothing to do; use `accept: [404]` on the route if a missing page means something to you.',
  ),
  E_RATE_LIMITED: kind(
    'rate-limited',
    'later',
    'the server asks for fewer requests (429)',
    'Requests come faster than this site allows.',
    'Nothing is lost: the host pauses and the page comes back. Lower `--rps` to avoid it.',
  ),
  E_SERVER: kind(
    'server-error',
    'retry',
    'the server failed (5xx)',
    'The site has trouble, perhaps because of the load.',
    'Usually passes by itself; lower `--concurrency` if it does not.',
  ),
  E_STATUS: kind(
    'http-status',
    'drop',
    'an answer that is no page',
    'The server answered with a status that carries no page.',
    'Add the status to the route’s `accept` if the handler can read it.',
  ),
  E_TOO_LARGE: kind(
    'too-large',
    'drop',
    'the response is larger than its limit',
    'A file in place of a page, an endless body, or a decompression bomb.',
    'Raise `limits.bodyMax` if the page really is this large.',
  ),
  E_HEADERS_TOO_LARGE: kind(
    'too-large',
    'drop',
    'the response headers are larger than 64 KiB',
    'A broken or hostile server.',
    'Nothing to do on our side.',
  ),
  E_ENCODING: kind(
    'encoding',
    'retry',
    'the body cannot be decompressed',
    'It was damaged or cut on the way, or is not encoded as the server says.',
    'Try `sluice fetch URL`; if it always fails the server is at fault.',
    2,
  ),
  E_CHARSET: kind(
    'encoding',
    'drop',
    'the page names a charset we refuse',
    'UTF-7 and unknown names are refused: they are an attack or a mistake.',
    'Nothing to do on our side: what such bytes mean cannot be known.',
  ),
  E_REDIRECT_LIMIT: kind(
    'redirect',
    'drop',
    'too many redirects, or a loop',
    'The server sends us in circles, often because it wants a cookie or a login.',
    'Follow the chain with `sluice fetch URL`.',
  ),
  E_REDIRECT_BAD: kind(
    'redirect',
    'drop',
    'a redirect that leads nowhere we go',
    'The Location is missing, no URL, or not http(s).',
    'Look at it with `sluice fetch URL`.',
  ),
  E_ROBOTS: kind(
    'robots',
    'drop',
    'robots.txt forbids this page',
    'The site asks crawlers to stay away from it.',
    'See the rule with `sluice robots URL`. Respect it, or get the owner’s permission and set `limits.robots: "ignore"`.',
  ),
  E_ROBOTS_UNREACHABLE: kind(
    'robots',
    'retry',
    'robots.txt cannot be read, so nothing is allowed',
    'The server fails on /robots.txt (5xx or no answer); RFC 9309 then forbids everything.',
    'Wait until the site is healthy and retry the dead letters.',
  ),
  E_PRIVATE_ADDRESS: kind(
    'private-address',
    'drop',
    'an address of the private network',
    'The name resolves to, or the link names, an internal address.',
    'If it is yours, allow exactly it with `--allow-address HOST:PORT`, or all with `--allow-private`.',
  ),
  E_URL_INVALID: kind(
    'url',
    'drop',
    'not a usable URL',
    'A malformed link or argument.',
    'Give an absolute http(s) URL of at most 8 KiB.',
  ),
  E_URL_SCHEME: kind(
    'url',
    'drop',
    'a scheme that is not fetched',
    'Only http and https pages are fetched.',
    'Leave such links out.',
  ),
  E_SELECTOR_EMPTY: kind(
    'selector',
    'retry',
    'a selector found nothing',
    'The page has another layout, or is an error page with status 200.',
    'Look at the snapshot; then mend the selector, or pass `{ optional: true }`.',
    2,
  ),
  E_JSON_INVALID: kind(
    'selector',
    'retry',
    'JSON that does not parse',
    'The page is an error page, or its JSON is cut.',
    'Look at the snapshot.',
    2,
  ),
  E_SELECTOR_INVALID: kind(
    'handler',
    'drop',
    'a selector that is no CSS',
    'A typo in the scraper.',
    'Mend the selector.',
  ),
  E_HTML_LIMIT: kind(
    'too-large',
    'drop',
    'a page with more structure than we read',
    'Nesting deeper than any real page: a trap.',
    'Nothing to do on our side.',
  ),
  E_ITEM_INVALID: kind(
    'item',
    'drop',
    'an item breaks the scraper’s schema',
    'The page lacks a field, or the schema is too strict.',
    'See errors.jsonl for the item and the reason; mend handler or schema.',
  ),
  E_ROUTE_UNMATCHED: kind(
    'definition',
    'drop',
    'no route matches a URL',
    'A URL was enqueued that no route’s `match` fits.',
    'Add a route, or name one: enqueue("job", url).',
  ),
  E_ROUTE_DATA: kind(
    'definition',
    'drop',
    'route data breaks the route’s schema',
    'enqueue() was called with other data than the route declares.',
    'Mend the data, or the route’s `data` schema.',
  ),
  E_HANDLER: kind(
    'handler',
    'drop',
    'the handler threw an error nobody named',
    'A bug in the scraper.',
    'Run `sluice try NAME URL -v` on this page, mend it, then `sluice dlq retry`.',
  ),
  E_LEASE_LOST: kind(
    'crash',
    'drop',
    'the worker died on this page, alone, several times',
    'The page crashes the process: memory, an endless loop, or a bug.',
    'Run `sluice try NAME URL` on it and watch the memory.',
  ),
  E_RETRY_ASKED: kind(
    'asked',
    'retry',
    'the handler asked for another try',
    'A handler called retry(): the page was not what it should be.',
    'Look at the snapshot and at the reason the handler gave.',
  ),
  E_STOPPED: kind(
    'stopped',
    'halt',
    'the scraper stopped the run',
    'A handler called stop().',
    'Resume with --resume when the reason is gone.',
  ),
  E_USAGE: kind(
    'usage',
    'halt',
    'the command line is not right',
    'An unknown word or a bad value.',
    'See `sluice help`.',
  ),
  E_OPTION: kind(
    'usage',
    'halt',
    'an option has a bad value',
    'Unknown name, wrong type, or out of bounds.',
    'See `sluice config --explain` for every option, its bounds and where its value came from.',
  ),
  E_DEFINITION: kind(
    'usage',
    'halt',
    'the scraper definition is not usable',
    'It does not compile, exports no scraper, or contradicts itself.',
    'Mend the file; `sluice try NAME URL` is the quickest check.',
  ),
  E_SCRAPER_NOT_FOUND: kind(
    'usage',
    'halt',
    'no scraper of that name',
    'A typo, or the file is elsewhere.',
    'See `sluice list`, or give the path of the file.',
  ),
  E_RUN_NOT_FOUND: kind(
    'usage',
    'halt',
    'no such run',
    'A typo, or another --out folder.',
    'Look under runs/, or give --out.',
  ),
  E_RUN_LOCKED: kind(
    'usage',
    'halt',
    'this run is being worked on by another process',
    'Two commands on one run folder would fight over its files.',
    'Wait for the other one, or stop it.',
  ),
  E_OUTPUT: kind(
    'output',
    'halt',
    'the output cannot be written',
    'The disk is full, or the folder is not writable.',
    'Make room or choose another --out; then --resume: nothing was lost.',
  ),
  E_SERVICE: kind(
    'service',
    'halt',
    'a needed service is unreachable',
    'The database or broker does not answer.',
    'Start it, or correct its URL.',
  ),
} as const satisfies Record<string, ErrorKind>

export type ErrorCode = keyof typeof ERRORS

export interface ErrorDetails {
  url?: string
  /** HTTP status, where there was one. */
  status?: number
  /** The server's Retry-After, or our own wait, in milliseconds from now. */
  retryAfterMs?: number
  /** Where in the user's scraper: `scrapers/jobs.ts:31 (handler "list")`. */
  at?: string
  /** More lines for a person, each without a newline. */
  notes?: readonly string[]
  /** In place of the table's advice, when this case has a better one. */
  fix?: string
  cause?: unknown
}

export class ScrapeError extends Error {
  override readonly name = 'ScrapeError'
  readonly code: ErrorCode
  readonly details: ErrorDetails

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.details = details
  }

  get kind(): ErrorKind {
    return ERRORS[this.code]
  }

  get class(): string {
    return this.kind.class
  }

  get verdict(): Verdict {
    return this.kind.verdict
  }

  get fix(): string {
    return this.details.fix ?? this.kind.fix
  }
}

/** What is kept of a failure in the frontier, the error log and events. */
export interface ErrorRecord {
  code: ErrorCode
  class: string
  message: string
  status?: number
  at?: string
}

export function toErrorRecord(error: ScrapeError): ErrorRecord {
  const { status, at } = error.details
  return {
    code: error.code,
    class: error.class,
    message: error.message.slice(0, 1000),
    ...(status === undefined ? {} : { status }),
    ...(at === undefined ? {} : { at }),
  }
}

/** Errors of known kind pass; anything else is a bug in a handler, kept as the cause. */
export function toScrapeError(error: unknown, fallback: ErrorCode, details: ErrorDetails = {}): ScrapeError {
  if (error instanceof ScrapeError) return error
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return new ScrapeError(fallback, message, { ...details, cause: error })
}

/** How a process ends that ends with this error; the whole list is in docs/reference/errors.md. */
export function exitCodeOfClass(cls: string): 1 | 2 | 3 | 4 {
  switch (cls) {
    case 'usage':
    case 'definition':
      return 2
    case 'service':
      return 3
    case 'stopped':
    case 'output': // nothing was lost: --resume goes on once there is room
      return 4
    default:
      return 1
  }
}
