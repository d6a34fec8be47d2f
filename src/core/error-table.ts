/** Every error code and what it means: `sluice explain`, docs/reference/errors.md and the retry manager read this table. */
import type { NotFetchedReason } from './not-fetched.ts'

/**
 * retry: again after a backoff · rotate: again with another session · later: again, costs no try · drop: give up on this task ·
 * halt: stop the run.
 */
export type Verdict = 'retry' | 'rotate' | 'later' | 'drop' | 'halt'

export interface ErrorKind {
  /** Groups errors in metrics, dead letters and `retry --class`. */
  readonly class: string
  readonly verdict: Verdict
  readonly what: string
  readonly why: string
  readonly fix: string
  /** Maximum number of tries for this code, if fewer than the run's `retries` + 1 make sense. */
  readonly triesMax?: number
  /** Not a failure: the page is skipped and counted under this reason. A start page still fails. */
  readonly notFetched?: NotFetchedReason
}

const kind = (cls: string, verdict: Verdict, what: string, why: string, fix: string, triesMax?: number): ErrorKind => ({
  class: cls,
  verdict,
  what,
  why,
  fix,
  triesMax,
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
    'The server accepted the request but did not respond.',
    'Lower `--concurrency` or `--rps`; raise `limits.timeout` if the site is always slow.',
  ),
  E_TIMEOUT_BODY: kind(
    'timeout',
    'retry',
    'the response body stalled',
    'The server or a proxy stopped sending in the middle of the page.',
    'Usually temporary; if not, lower `--concurrency`.',
  ),
  E_TIMEOUT_TOTAL: kind(
    'timeout',
    'retry',
    'the request exceeded its timeout',
    'A slow page, a slow redirect chain, or a server that sends very slowly.',
    'Raise `limits.timeout`.',
  ),
  E_CONNECTION: kind(
    'connection',
    'retry',
    'the connection failed or was closed',
    'The server refused or reset it.',
    'Check the host and port, and that a server is listening there.',
  ),
  E_RESOURCES: kind(
    'resources',
    'later',
    'the process is out of file descriptors, sockets or memory',
    'More pages are in flight than the limits of the process or the machine allow.',
    'Raise the limit (`ulimit -n 4096`) or lower --concurrency. The page waits; this does not count as a try.',
  ),
  E_PROTOCOL: kind(
    'connection',
    'retry',
    'the response is not valid HTTP',
    'A broken server, or a proxy that damages responses.',
    'Inspect it with `curl -v`; retries do not help if the server always responds like this.',
    2,
  ),
  E_BODY_SHORT: kind(
    'connection',
    'retry',
    'the body ended before its announced length',
    'The connection was closed in the middle of the page.',
    'Usually temporary. An incomplete page is never treated as a page.',
  ),
  E_TLS: kind(
    'tls',
    'drop',
    'the TLS certificate or handshake is not acceptable',
    'An expired, self-signed or foreign certificate, or plain text on a TLS port.',
    'Fix the certificate; for your own test server, set NODE_EXTRA_CA_CERTS to its CA (with `--identity tls`: SSL_CERT_FILE).',
  ),
  E_DNS: kind(
    'dns',
    'retry',
    'the host name does not resolve',
    'A typo, or the DNS resolver is unreachable.',
    'Check the spelling with `getent hosts NAME`.',
  ),
  E_PROXY: kind(
    'proxy',
    'rotate',
    'the proxy rejects the connection',
    'It is down, rejects the user name or password, or does not allow the connection.',
    'Check its URL with `curl -x URL https://example.com`; another proxy is tried if there is one.',
  ),
  E_PROXY_REFUSED: kind(
    'proxy-login',
    'halt',
    'the proxy rejects the user name or password',
    'The login in `--proxy` or `--proxies` is missing, wrong or expired (407). With several proxies, all of them reject it.',
    'Correct the login and resume with --resume; `sluice doctor` checks the proxies.',
  ),
  E_PROXIES_LOST: kind(
    'stopped',
    'halt',
    'the run stopped because no proxy has worked for a while',
    'All proxies are down, reset connections, or block requests. Nothing is sent directly instead.',
    'Nothing is lost: resume with --resume when a proxy works again (`sluice doctor` checks them). With `--wait` a run waits as long as it takes.',
  ),
  E_PROXIES_DOWN: kind(
    'proxy',
    'later',
    'no proxy works',
    'All proxies are down, reject us, or have not come back yet. Nothing is sent directly instead.',
    'Nothing is lost: pages wait until a proxy is back. If none comes back within `--wait` (3 minutes), the run stops and can be resumed. Check the proxies with `sluice doctor`.',
  ),
  E_UNAUTHORIZED: kind(
    'forbidden',
    'drop',
    'the page requires a login (401)',
    'The server needs credentials that we do not send.',
    'Add the credentials to the `headers` of the route, or skip the page.',
  ),
  E_FORBIDDEN: kind(
    'forbidden',
    'rotate',
    'the server forbids access to the page (403)',
    'The page is private, or the server rejects this client.',
    'Slow down, identify yourself in the user agent, or ask the site owner.',
  ),
  E_NOT_FOUND: kind(
    'not-found',
    'drop',
    'the page does not exist (404 or 410)',
    'The link is dead.',
    'Nothing to do; use `accept: [404]` on the route if missing pages matter to you.',
  ),
  E_RATE_LIMITED: kind(
    'rate-limited',
    'later',
    'the server limits the request rate (429)',
    'Requests exceed the rate limit of the site.',
    'Nothing is lost: the host is paused and the page is retried. Lower `--rps` to avoid it.',
  ),
  E_BLOCKED: kind(
    'blocked',
    'rotate',
    'the site blocked the request',
    'A bot protection service (named in the error) rejects this client, address or request rate.',
    'Slow down, ask the owner for access, or use other proxies (`--proxies`). Challenges are reported, never solved.',
  ),
  E_CAPTCHA: kind(
    'captcha',
    'rotate',
    'the site asks for a CAPTCHA',
    'The response was a CAPTCHA or challenge instead of the page. We do not solve these.',
    'Slow down, ask the owner for access or an API, or use other proxies (`--proxies`).',
  ),
  E_LOGIN_WALL: kind(
    'login-wall',
    'drop',
    'the site shows a login page instead of the page',
    'The page is for signed-in users, or the site hides it after a number of pages.',
    'Skip the page; slow down if it used to be public.',
  ),
  E_CIRCUIT_OPEN: kind(
    'circuit',
    'later',
    'too many pages of this host have failed, so the page waits',
    'The circuit breaker is open: a few pages at a time probe the host, and the rest follow as soon as one succeeds.',
    'You do not need to do anything: waiting costs a page no try, and pages that were not requested stay in the queue. If no page succeeds for `--wait` (3 minutes), the run stops and can be resumed. Tune the circuit breaker with `--circuit N`, or turn it off with `--circuit off`.',
  ),
  E_SERVER: kind(
    'server-error',
    'retry',
    'server error (5xx)',
    'The site has problems, perhaps because of load.',
    'Usually temporary; lower `--concurrency` if it is not.',
  ),
  E_STATUS: kind(
    'http-status',
    'drop',
    'unexpected HTTP status',
    'The server responded with a status that has no page.',
    'Add the status to the route’s `accept` if the handler can read it.',
  ),
  E_TOO_LARGE: kind(
    'too-large',
    'drop',
    'the response exceeds the size limit',
    'A file instead of a page, an endless body, or a decompression bomb.',
    'Raise `limits.bodyMax` if the page really is this large.',
  ),
  E_HEADERS_TOO_LARGE: kind(
    'too-large',
    'drop',
    'the response headers exceed 64 KiB',
    'A broken or hostile server.',
    'Nothing to do on your side.',
  ),
  E_ENCODING: kind(
    'encoding',
    'retry',
    'the body cannot be decompressed',
    'It was damaged or cut off in transit, or does not have the encoding that the server declares.',
    'Try `sluice fetch URL`; if it always fails, the server is at fault.',
    2,
  ),
  E_CHARSET: kind(
    'encoding',
    'drop',
    'the charset of the page is not supported',
    'UTF-7 and unknown charsets are rejected: they are an attack or a mistake.',
    'Nothing to do on your side: such bytes cannot be decoded.',
  ),
  E_EMPTY: kind(
    'empty',
    'retry',
    'the response is empty',
    'The server responded 2xx with an empty body or only white space, which often hides a failure.',
    'Open the URL in a browser. If empty responses are fine for this route, set `accept: { empty: true }`.',
    3,
  ),
  E_CONTENT_TYPE: kind(
    'content-type',
    'drop',
    'the URL is a file, not a page',
    'The server sent an image, an archive, a PDF or other binary data. The body was not downloaded.',
    'Download it with `file(url)`, do not enqueue such links, or accept the type: `accept: { types: ["application/pdf"] }`.',
  ),
  E_SUSPECT: kind(
    'blocked',
    'rotate',
    'the start page looks like a block or an empty shell',
    'It has almost no content, or little more than a CAPTCHA. It may be an unrecognised block page, or a page rendered by JavaScript.',
    'Look at the snapshot. If the page is rendered by JavaScript, use `fetch: "browser"`; if it really looks like this, set `accept: { suspect: true }`.',
    3,
  ),
  E_REDIRECT_LIMIT: kind(
    'redirect',
    'drop',
    'too many redirects, or a redirect loop',
    'The server redirects in circles, often because it expects a cookie or a login.',
    'Follow the chain with `sluice fetch URL`.',
  ),
  E_REDIRECT_BAD: kind(
    'redirect',
    'drop',
    'invalid redirect target',
    'The Location header is missing, not a valid URL, or not http(s).',
    'Inspect it with `sluice fetch URL`.',
  ),
  E_ROBOTS: {
    ...kind(
      'robots',
      'drop',
      'robots.txt forbids this page',
      'The site does not allow crawlers to fetch it. Links to such pages are skipped and counted; a forbidden start page fails the run.',
      'See the rule with `sluice robots URL`. Respect it, or get the owner’s permission and set `limits.robots: "ignore"`.',
    ),
    notFetched: 'robots',
  },
  E_ROBOTS_UNREACHABLE: kind(
    'robots',
    'later',
    'robots.txt cannot be read, so nothing may be fetched',
    'The server fails on /robots.txt (5xx or no response); RFC 9309 then disallows everything.',
    'Nothing is lost: the pages wait until the file can be read. If it cannot be read within `--wait` (3 minutes), the run stops and can be resumed.',
  ),
  E_PRIVATE_ADDRESS: kind(
    'private-address',
    'drop',
    'the address belongs to a private network',
    'The host name resolves to an internal address, or the link contains one.',
    'If it is yours, allow this address with `--allow-address HOST:PORT`, or all of them with `--allow-private`.',
  ),
  E_URL_INVALID: kind(
    'url',
    'drop',
    'the URL is not valid',
    'A malformed link or argument.',
    'Give an absolute http(s) URL of at most 8 KiB.',
  ),
  E_URL_SCHEME: kind(
    'url',
    'drop',
    'the URL scheme is not supported',
    'Only http and https URLs are fetched.',
    'Do not enqueue such links.',
  ),
  E_SELECTOR_EMPTY: kind(
    'selector',
    'retry',
    'a selector matched nothing',
    'The layout of the page has changed, or it is an error page with status 200.',
    'Look at the snapshot; then fix the selector, or pass `{ optional: true }`.',
    2,
  ),
  E_JSON_INVALID: kind(
    'selector',
    'retry',
    'invalid JSON',
    'The response is an error page, or its JSON is incomplete.',
    'Look at the snapshot.',
    2,
  ),
  E_SELECTOR_INVALID: kind('handler', 'drop', 'invalid CSS selector', 'A typo in the scraper.', 'Fix the selector.'),
  E_HTML_LIMIT: kind(
    'too-large',
    'drop',
    'the document is too deeply nested',
    'It is nested deeper than any real page: a trap.',
    'Nothing to do on your side.',
  ),
  E_ITEM_INVALID: kind(
    'item',
    'drop',
    'an item does not match the scraper’s schema',
    'The page lacks a field, or the schema is too strict.',
    'See errors.jsonl for the item and the reason; fix the handler or the schema.',
  ),
  E_HANDLER_TIMEOUT: kind(
    'handler',
    'retry',
    'the handler kept its browser page for too long',
    'It waits for something that never happens, or a script keeps the page busy.',
    'Set a timeout on every wait in the handler; raise `limits.handlerTimeout` if the page needs that long.',
    2,
  ),
  E_BROWSER_MISSING: kind(
    'service',
    'halt',
    'no browser found',
    'A route needs a browser, and no Chromium was found on this machine.',
    'Install one (Debian, Ubuntu: `apt install chromium-headless-shell`), or set SLUICE_CHROME to its path.',
  ),
  E_BROWSER_LAUNCH: kind(
    'service',
    'halt',
    'the browser does not start',
    'A library is missing, memory is exhausted, or the system does not allow its sandbox.',
    'Start it by hand with `--headless --dump-dom about:blank` and read its output.',
  ),
  E_BROWSER_CRASHED: kind(
    'browser',
    'retry',
    'the page or the browser crashed',
    'The page exceeds its memory limit, or the browser was killed or stopped responding.',
    'Usually temporary. If it is always this page, block what it does not need: `browser: { block: [...] }`.',
    3,
  ),
  E_BROWSER_FLOOD: kind(
    'browser',
    'drop',
    'the page keeps opening windows or dialogs',
    'A hostile or broken page.',
    'Fetch it without a browser, or block its scripts: `browser: { block: ["script"] }`.',
  ),
  E_BROWSER_DOWNLOAD: kind(
    'browser',
    'drop',
    'the URL is a file, not a page',
    'The server sends it as a download, which a browser does not render.',
    'Download it with `file(url)`.',
  ),
  E_ROUTE_UNMATCHED: kind(
    'definition',
    'drop',
    'no route matches a URL',
    'A URL was enqueued that does not match the `match` of any route.',
    'Add a route, or name one: enqueue("job", url).',
  ),
  E_ROUTE_DATA: kind(
    'definition',
    'drop',
    'route data does not match the route’s schema',
    'enqueue() was called with data that the route does not declare.',
    'Fix the data, or the route’s `data` schema.',
  ),
  E_HANDLER: kind(
    'handler',
    'drop',
    'unhandled error in a handler',
    'A bug in the scraper.',
    'Run `sluice try NAME URL -v` on this page, fix the handler, then run `sluice dlq retry`.',
  ),
  E_LEASE_LOST: kind(
    'crash',
    'drop',
    'the worker crashed on this page several times',
    'The page crashes the process: memory, an endless loop, or a bug.',
    'Run `sluice try NAME URL` on it and watch the memory.',
  ),
  E_WORKERS_DIE: kind(
    'crash',
    'halt',
    'workers keep crashing and make no progress',
    'Each worker fails on the same thing: a flag, another version of the scraper, memory, or a bug.',
    'Start one worker by hand and read its output: `sluice worker --scraper NAME`.',
  ),
  E_RETRY_ASKED: kind(
    'asked',
    'retry',
    'the handler requested a retry',
    'A handler called retry(): the page was not as expected.',
    'Look at the snapshot and at the reason that the handler gave.',
  ),
  E_STOPPED: kind(
    'stopped',
    'halt',
    'the scraper stopped the run',
    'A handler called stop().',
    'Resume with --resume once the reason is resolved.',
  ),
  E_STALLED: kind(
    'stopped',
    'halt',
    'the run stopped because all remaining pages have to wait',
    'The remaining sites asked us to wait (Retry-After), have an unreadable robots.txt, or keep failing. The message says which site, why, and until when.',
    'Nothing is lost: resume with --resume after that time. With `--wait` a run waits as long as it takes, with `--wait 1h` up to an hour.',
  ),
  E_USAGE: kind(
    'usage',
    'halt',
    'the command line is not valid',
    'An unknown word or an invalid value.',
    'See `sluice help`.',
  ),
  E_OPTION: kind(
    'usage',
    'halt',
    'invalid option',
    'Unknown name, wrong type, or out of bounds.',
    'See `sluice config --explain` for every option, its bounds and where its value came from.',
  ),
  E_PACKAGE_MISSING: kind(
    'usage',
    'halt',
    'an optional package is missing',
    'Drivers, the browser, the API server and some formats need a package that is not installed with sluice.',
    'Run the `npm install` command of the message. The list is in docs/how-to/start-a-project.md.',
  ),
  E_DEFINITION: kind(
    'usage',
    'halt',
    'the scraper definition is not valid',
    'It does not compile, does not export a scraper, or contradicts itself.',
    'Fix the file; `sluice try NAME URL` is the quickest check.',
  ),
  E_OPT_IN: kind(
    'usage',
    'halt',
    'the scraper is opt-in and not enabled',
    'The site’s terms discourage automated access; see the message for details.',
    "Decide whether you may use it. Then enable it: `--boards NAME`, or `boards: ['NAME']` in sluice.config.ts.",
  ),
  E_SCRAPER_NOT_FOUND: kind(
    'usage',
    'halt',
    'no scraper with this name',
    'A typo, or the file is in another folder.',
    'See `sluice list`, or give the path of the file.',
  ),
  E_RUN_NOT_FOUND: kind(
    'usage',
    'halt',
    'no such run',
    'A typo, or another --out folder.',
    'Look under runs/, or give --out.',
  ),
  E_RUN_RECORD: kind(
    'usage',
    'halt',
    'the run record cannot be read',
    'Its run.json was edited or truncated, or another program wrote it.',
    'Correct the file named in the message, or move the folder of the run away.',
  ),
  E_ITEM_NOT_FOUND: kind(
    'usage',
    'halt',
    'no such item in the history',
    'A typo, another --store, or no server (`sluice serve`) has recorded a run with it yet.',
    'See GET /v1/items?scraper=NAME for the known keys.',
  ),
  E_SCHEDULE_NOT_FOUND: kind(
    'usage',
    'halt',
    'no such schedule',
    'A typo, or another --store.',
    'See `sluice schedule list`.',
  ),
  E_WEBHOOK_NOT_FOUND: kind('usage', 'halt', 'no such webhook', 'A typo, or another --store.', 'See GET /v1/webhooks.'),
  E_DELIVERY_NOT_FOUND: kind(
    'usage',
    'halt',
    'no such delivery',
    'A typo, or it is past its retention (30 days).',
    'See GET /v1/webhooks/ID/deliveries.',
  ),
  E_RUN_LOCKED: kind(
    'usage',
    'halt',
    'another process is working on this run',
    'Two commands on one run folder would overwrite each other’s files.',
    'Wait for the other process, or stop it.',
  ),
  E_MESSAGE_EXPIRED: kind(
    'expired',
    'drop',
    'a message exceeded its time to live',
    'There were too few workers, or a routing rule set a very short time to live.',
    'Start more workers, or raise `ttl` in the rules; then `sluice dlq retry`.',
  ),
  E_MESSAGE_FOREIGN: kind(
    'message',
    'drop',
    'the queue contains a message that is not from Sluice',
    'Another program publishes to the same queue, or another version of Sluice sent it.',
    'Look at it in failed_urls (scrapers:errors for the task protocol), and give that program a separate queue.',
  ),
  E_DEFINITION_DIFFERS: kind(
    'definition',
    'halt',
    'the scraper differs from the one that the run was started with',
    'Its source, or a file it imports, has changed or has another version on this machine.',
    'Deploy the same version of the scraper here, or start a new run with this one: `sluice start NAME --fresh`.',
  ),
  E_OUTPUT: kind(
    'output',
    'halt',
    'the output cannot be written',
    'The disk is full, or the folder is not writable.',
    'Free some space, then resume with --resume: nothing was lost. A run that had not started yet starts from the beginning; another --out works too.',
  ),
  E_FILE_TOO_LARGE: kind(
    'too-large',
    'drop',
    'a file exceeds the size limit',
    'The file is larger than expected, or its body is endless.',
    'Raise `--file-max` if it really is this large.',
  ),
  E_FILE_WORKER: kind(
    'crash',
    'later',
    'the process that handled a file crashed',
    'It was killed, or ran out of memory; a file that repeatedly crashes its own process is given up.',
    'Nothing is lost: the download resumes from what is already stored. Look for the kernel’s out-of-memory killer if it happens often.',
  ),
  E_FILE_STORE: kind(
    'file-store',
    'later',
    'the file store is unreachable',
    'The server of the bucket is down, unreachable or overloaded.',
    'Nothing is lost: downloaded files wait for it. Start it, or correct its URL.',
  ),
  E_FILE_RECORD: kind(
    'file-store',
    'later',
    'the record of a stored file cannot be written',
    'The database for file records is down, locked or full.',
    'Nothing is lost: the file is stored, and its record is retried. Start the database, or free some space.',
  ),
  E_FILE_MISSING: kind(
    'file-store',
    'drop',
    'a file that should be stored is missing',
    'The browser’s download was removed, or the task ran on another machine.',
    'Fetch the page again in a new run: `sluice retry` repeats only the file.',
  ),
  E_FILE_LOST: kind(
    'file-store',
    'drop',
    'the machine with a browser’s download did not come back',
    'The machine or container was replaced together with its spool, or no worker was started there for 10 minutes.',
    'If the spool still exists, start a worker on that machine, then run `sluice retry`. If not, the bytes are lost and a retry cannot help: fetch the page again in a new run. Keep the run folders (--out) of browser workers on a disk that outlives the container.',
  ),
  E_QUEUE_LOST: kind(
    'service',
    'halt',
    'the queue of the run is lost: its server has lost the data',
    'Redis was restarted without persistence, flushed or replaced, or the run was idle for 30 days.',
    'Stored items are still there (`sluice export RUN`). Set `appendonly yes` in Redis, then start a new run: `sluice start NAME --mode distributed --fresh`.',
  ),
  E_OTHER_QUEUE: kind(
    'usage',
    'halt',
    'the run is in a different queue than this process uses',
    'The run was started with another SLUICE_FRONTIER or --frontier, but the same store. Its tasks are not here, so this process cannot show, fill, process or end it.',
    'Set --frontier (SLUICE_FRONTIER) to the queue of the run; for amqp:// also set --redis to its Redis.',
  ),
  E_SERVICE: kind(
    'service',
    'halt',
    'a required service is unreachable',
    'The database or broker does not respond.',
    'Start it, or correct its URL.',
  ),
} as const satisfies Record<string, ErrorKind>

/** The codes of docs/reference/errors.md. */
export type ErrorCode = keyof typeof ERRORS

export interface ApiErrorKind {
  readonly class: 'api'
  /** HTTP status of the response. */
  readonly status: number
  readonly what: string
  readonly why: string
  readonly fix: string
}

const api = (status: number, what: string, why: string, fix: string): ApiErrorKind => ({
  class: 'api',
  status,
  what,
  why,
  fix,
})

/** Errors that only the API has: they end a request, never a page or a run, so they have a status instead of a verdict. */
export const API_ERRORS = {
  E_REQUEST: api(
    400,
    'the request is not valid',
    'A field is missing, unknown or out of bounds, the body is not JSON, or a cursor is from another list. Bodies that are too large get 413, other content types 415.',
    'See `errors` in the response for each field, and /docs for what the route takes.',
  ),
  E_KEY: api(
    401,
    'the API key is missing or not valid',
    'The server has keys, and the request has none, a wrong one, or one that was revoked.',
    'Send `Authorization: Bearer KEY`. Create one on the server with `sluice key create NAME`.',
  ),
  E_ROLE: api(
    403,
    'the API key may not do this',
    'The route needs a role (read, operate, admin) that the key does not have.',
    'Use a key with that role: `sluice key create NAME --role operate`.',
  ),
  E_NO_ROUTE: api(
    404,
    'there is no such route',
    'A typo in the path, another version of the API, or a server with another role.',
    'See /docs for every route.',
  ),
  E_METHOD: api(
    405,
    'the route does not take this method',
    'For example, a GET on a route that only takes POST.',
    'Use one of the methods in the `Allow` header.',
  ),
  E_JOB_NOT_FOUND: api(
    404,
    'no such job',
    'A typo, another --store, or the job is not imported yet.',
    'GET /v1/jobs lists them.',
  ),
  E_WORKER_NOT_FOUND: api(
    404,
    'no such worker',
    'A typo, or the worker has stopped and was forgotten.',
    'GET /v1/workers lists them.',
  ),
  E_IDEMPOTENCY_BUSY: api(
    409,
    'the first request with this Idempotency-Key is still running',
    'The client repeated a request before it got the response.',
    'Wait a moment, then repeat the request with the same key: it gets the same response.',
  ),
  E_IDEMPOTENCY_OTHER: api(
    422,
    'this Idempotency-Key was used for another request',
    'Method, path or body differ from the first request with this key.',
    'Use a new key for each new request.',
  ),
  E_WEBHOOK_OFF: api(
    409,
    'the webhook is turned off',
    'It was turned off by hand, or because its receiver answered 410.',
    'Turn it on with PUT /v1/webhooks/ID and `isActive: true`.',
  ),
  E_NOT_STARTED: api(
    422,
    'the schedule could not start its run',
    'The scraper is missing or not usable, or the last run still runs and the schedule does not allow overlap.',
    'The detail says why; `sluice schedule list` shows the last results.',
  ),
  E_TOO_MANY_REQUESTS: api(
    429,
    'the client exceeds the rate limit of the API',
    'Too many requests, wrong keys or open event streams from one address or key.',
    'Wait as long as the `Retry-After` header says.',
  ),
  E_INTERNAL: api(
    500,
    'the server failed on this request',
    'A bug, or a failure that the server does not know.',
    'The log of the server has the stack trace. Please report it.',
  ),
  E_NOT_READY: api(
    503,
    'the server is not ready',
    'Its store or queue is unreachable, or it is starting or stopping.',
    'GET /readyz names what is missing. Repeat the request as the `Retry-After` header says.',
  ),
  E_NOT_OURS: api(
    502,
    'the response is not from a Sluice server',
    'A proxy or another program answered. Only the client (`sluice/client`) reports this code, with the status it got.',
    'Check the base URL, and the log of the proxy in between.',
  ),
} as const satisfies Record<string, ApiErrorKind>

export type ApiErrorCode = keyof typeof API_ERRORS

/** All codes. */
export const EVERY_ERROR: Readonly<Record<ErrorCode | ApiErrorCode, ErrorKind | ApiErrorKind>> = {
  ...ERRORS,
  ...API_ERRORS,
}

/** The site rejected the request, for whatever reason. */
export const BLOCK_CODES: ReadonlySet<ErrorCode> = new Set(['E_BLOCKED', 'E_CAPTCHA', 'E_FORBIDDEN'])
