/** All there is to know about each error code: `sluice explain`, docs/reference/errors.md and the retry manager read it. */
import type { NotFetchedReason } from './not-fetched.ts'

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
  /** Not a failure: the page is skipped and counted under this reason. A start page still fails. */
  readonly notFetched?: NotFetchedReason
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
  E_RESOURCES: kind(
    'resources',
    'later',
    'the process is out of file descriptors, sockets or memory',
    'More pages are in flight than the limits of the process or the machine allow.',
    'Raise the limit (`ulimit -n 4096`) or lower --concurrency. The page waits, which costs it no try.',
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
    'Mend the certificate; for your own test server name its authority in NODE_EXTRA_CA_CERTS (with `--identity tls`: SSL_CERT_FILE).',
  ),
  E_DNS: kind(
    'dns',
    'retry',
    'the host name does not resolve',
    'A typo, or the resolver is unreachable.',
    'Check the spelling and try `getent hosts NAME`.',
  ),
  E_PROXY: kind(
    'proxy',
    'rotate',
    'the proxy does not let us through',
    'It is down, rejects our user name or password, or does not allow the connection.',
    'Check its URL with `curl -x URL https://example.com`; another proxy is tried where there is one.',
  ),
  E_PROXY_REFUSED: kind(
    'proxy-login',
    'halt',
    'the proxy rejects our user name or password',
    'The login in `--proxy` or `--proxies` is missing, wrong or expired (407). With several proxies, all of them reject it.',
    'Correct the login and continue with --resume; `sluice doctor` checks the proxies.',
  ),
  E_PROXIES_LOST: kind(
    'stopped',
    'halt',
    'the run stopped because no proxy has worked for a while',
    'All proxies are down, reset connections, or do not let requests through. Nothing is sent directly instead.',
    'Nothing is lost: continue with --resume when a proxy works again (`sluice doctor` checks them). With `--wait` a run waits as long as it takes.',
  ),
  E_PROXIES_DOWN: kind(
    'proxy',
    'later',
    'no proxy works',
    'All of them are down, refuse us, or have not come back yet. Nothing goes out directly in their place.',
    'Nothing is lost: pages wait until a proxy is back. If none is back within `--wait` (3 minutes), the run stops and can be resumed. Check the proxies with `sluice doctor`.',
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
  E_BLOCKED: kind(
    'blocked',
    'rotate',
    'the site turned us away: a block page in place of the page',
    'A guard in front of the site (its name is in the error) does not want this client, address or pace.',
    'Slow down, ask the owner for access, or use another way out (`--proxies`). Challenges are reported, never solved.',
  ),
  E_CAPTCHA: kind(
    'captcha',
    'rotate',
    'the site wants proof of a human',
    'A CAPTCHA or challenge came in place of the page. We do not solve these.',
    'Slow down, ask the owner for access or an API, or use another way out (`--proxies`).',
  ),
  E_LOGIN_WALL: kind(
    'login-wall',
    'drop',
    'the site shows its login in place of the page',
    'The page is for signed-in users, or the site hides it after a number of pages.',
    'Leave the page out; slow down if it used to be open to everybody.',
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
  E_EMPTY: kind(
    'empty',
    'retry',
    'the response is empty',
    'The server answered 2xx with an empty body or only white space, which often hides a failure behind it.',
    'Open the URL in a browser. If empty responses are fine for this route, set `accept: { empty: true }`.',
    3,
  ),
  E_CONTENT_TYPE: kind(
    'content-type',
    'drop',
    'the URL is a file, not a page',
    'The server sent an image, an archive, a PDF or other binary data. Its body was not read.',
    'Download it with `file(url)`, do not enqueue such links, or accept the type: `accept: { types: ["application/pdf"] }`.',
  ),
  E_SUSPECT: kind(
    'blocked',
    'rotate',
    'the start page looks like a block or an empty shell',
    'It has almost no content, or a CAPTCHA and little else. It may be an unrecognised block page, or a page that is rendered by JavaScript.',
    'Look at the snapshot. If the page is rendered by JavaScript, use `fetch: "browser"`; if it really looks like this, set `accept: { suspect: true }`.',
    3,
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
    'robots.txt cannot be read, so nothing is allowed',
    'The server fails on /robots.txt (5xx or no answer); RFC 9309 then forbids everything.',
    'Nothing is lost: the pages wait until the file can be read. If it cannot be read within `--wait` (3 minutes), the run stops and can be resumed.',
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
  E_HANDLER_TIMEOUT: kind(
    'handler',
    'retry',
    'the handler kept its browser page for too long',
    'It waits for something that never comes, or the page keeps its script busy.',
    'Give each wait of the handler a timeout of its own; raise `limits.handlerTimeout` if the page needs that long.',
    2,
  ),
  E_BROWSER_MISSING: kind(
    'service',
    'halt',
    'there is no browser to run',
    'A route wants a browser, and no Chromium was found on this machine.',
    'Install one (Debian, Ubuntu: `apt install chromium-headless-shell`), or name its program in SLUICE_CHROME.',
  ),
  E_BROWSER_LAUNCH: kind(
    'service',
    'halt',
    'the browser does not start',
    'A library is missing, there is no memory left, or the system does not allow its sandbox.',
    'Run it by hand with `--headless --dump-dom about:blank` and see what it says.',
  ),
  E_BROWSER_CRASHED: kind(
    'browser',
    'retry',
    'the page or its browser died',
    'The page takes more memory than it may, or the browser was killed or did not answer any more.',
    'Usually passes by itself. If it is always this page, leave out what it does not need: `browser: { block: [...] }`.',
    3,
  ),
  E_BROWSER_FLOOD: kind(
    'browser',
    'drop',
    'the page opens windows or dialogs without end',
    'A hostile or broken page.',
    'Fetch it without a browser, or block its scripts: `browser: { block: ["script"] }`.',
  ),
  E_BROWSER_DOWNLOAD: kind(
    'browser',
    'drop',
    'the URL is a file, not a page',
    'The server sends it as a download, which a browser shows no page for.',
    'Download it with `file(url)`.',
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
  E_WORKERS_DIE: kind(
    'crash',
    'halt',
    'workers die one after the other and nothing gets done',
    'What one fails on, the next fails on too: a flag, another version of the scraper, memory, or a bug.',
    'Start one worker by hand and see what it says: `sluice worker --scraper NAME`.',
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
  E_STALLED: kind(
    'stopped',
    'halt',
    'the run stopped because everything left has to wait',
    'The remaining sites asked us to wait (Retry-After), have an unreadable robots.txt, or keep failing. The message says which site, why, and until when.',
    'Nothing is lost: continue with --resume after that time. With `--wait` a run waits as long as it takes, with `--wait 1h` up to an hour.',
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
    'the scraper definition is not usable',
    'It does not compile, exports no scraper, or contradicts itself.',
    'Mend the file; `sluice try NAME URL` is the quickest check.',
  ),
  E_OPT_IN: kind(
    'usage',
    'halt',
    'the scraper is off until an operator turns it on',
    'The site it reads says that it does not want automated visitors; the message says what it says.',
    "Decide whether you may and want to. Then name it in `boards`: `--boards NAME`, or `boards: ['NAME']` in sluice.config.ts.",
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
  E_RUN_RECORD: kind(
    'usage',
    'halt',
    'the record of a run cannot be read',
    'Its run.json was edited or cut off, or another program wrote it.',
    'Correct the file the message names, or move the folder of the run away.',
  ),
  E_ITEM_NOT_FOUND: kind(
    'usage',
    'halt',
    'no such item in the history',
    'A typo, another --store, or no server (`sluice serve`) has read a run with it yet.',
    'See GET /v1/items?scraper=NAME for the keys that are known.',
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
    'A typo, or it is older than what is kept (30 days).',
    'See GET /v1/webhooks/ID/deliveries.',
  ),
  E_RUN_LOCKED: kind(
    'usage',
    'halt',
    'this run is being worked on by another process',
    'Two commands on one run folder would fight over its files.',
    'Wait for the other one, or stop it.',
  ),
  E_MESSAGE_EXPIRED: kind(
    'expired',
    'drop',
    'a message waited longer than its time to live',
    'There were too few workers, or a routing rule gave it very little time.',
    'Start more workers, or raise `ttl` in the rules; then `sluice dlq retry`.',
  ),
  E_MESSAGE_FOREIGN: kind(
    'message',
    'drop',
    'a message in the queue is not one of ours',
    'Another program publishes to the same queue, or it was made by another version.',
    'Look at it in failed_urls (scrapers:errors for the task protocol), and give that program a queue of its own.',
  ),
  E_DEFINITION_DIFFERS: kind(
    'definition',
    'halt',
    'the scraper here is not the one the run was started with',
    'Its source, or a file it imports, was changed or is of another version on this machine.',
    'Bring the same version of the scraper here, or start a new run with this one: `sluice start NAME --fresh`.',
  ),
  E_OUTPUT: kind(
    'output',
    'halt',
    'the output cannot be written',
    'The disk is full, or the folder is not writable.',
    'Make room, then resume with --resume: nothing was lost. A run that had not begun yet starts from the beginning; another --out works too.',
  ),
  E_FILE_TOO_LARGE: kind(
    'too-large',
    'drop',
    'a file is larger than its limit',
    'A file larger than expected, or a body without end.',
    'Raise the largest size of a file if it really is this large.',
  ),
  E_FILE_WORKER: kind(
    'crash',
    'later',
    'the process that worked on a file died',
    'It was killed, or ran out of memory; a file that does this to a process of its own several times is given up.',
    'Nothing is lost: what was downloaded is kept and goes on. Look for the kernel’s out-of-memory killer if it happens often.',
  ),
  E_FILE_STORE: kind(
    'file-store',
    'later',
    'the store of files does not answer',
    'The bucket’s server is down, unreachable or overloaded.',
    'Nothing is lost: what was downloaded waits for it. Start it, or correct its URL.',
  ),
  E_FILE_RECORD: kind(
    'file-store',
    'later',
    'the record of a stored file cannot be written',
    'The database of records is down, locked or full.',
    'Nothing is lost: the file is stored, and its record waits. Start the database, or make room for it.',
  ),
  E_FILE_MISSING: kind(
    'file-store',
    'drop',
    'a file that was to be stored is gone',
    'Somebody removed what the browser had kept, or the task ran on another machine.',
    'Fetch the page that made it again, in a new run: `sluice retry` repeats the file alone.',
  ),
  E_FILE_LOST: kind(
    'file-store',
    'drop',
    'the machine that had a browser’s download does not come back',
    'The machine or container was replaced, and its spool with it; or no worker was started there again for 10 minutes.',
    'If its spool is still there, start a worker on it, then `sluice retry`. If not, the bytes are gone and a retry cannot help: fetch the page again, in a new run. Keep run folders (--out) of browser workers on a disk that outlives their container.',
  ),
  E_QUEUE_LOST: kind(
    'service',
    'halt',
    'the queue of the run is gone: its server has lost the data',
    'Redis was restarted without persistence, flushed or replaced by a new server, or no worker had worked on the run for 30 days.',
    'Stored items are still there (`sluice export RUN`). Set `appendonly yes` in Redis, then start a new run: `sluice start NAME --mode distributed --fresh`.',
  ),
  E_OTHER_QUEUE: kind(
    'usage',
    'halt',
    'the run is in another queue than the one this process uses',
    'The run was started with another SLUICE_FRONTIER or --frontier and the same store. Its tasks are not here, so this process cannot show, fill, work on or end it.',
    'Set --frontier (SLUICE_FRONTIER) to the queue of the run; for amqp:// also set --redis to its Redis.',
  ),
  E_SERVICE: kind(
    'service',
    'halt',
    'a needed service is unreachable',
    'The database or broker does not answer.',
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

/** Every code there is. */
export const EVERY_ERROR: Readonly<Record<ErrorCode | ApiErrorCode, ErrorKind | ApiErrorKind>> = {
  ...ERRORS,
  ...API_ERRORS,
}

/** The site turned us away, whatever the reason. */
export const BLOCK_CODES: ReadonlySet<ErrorCode> = new Set(['E_BLOCKED', 'E_CAPTCHA', 'E_FORBIDDEN'])
