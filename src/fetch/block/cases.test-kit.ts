/** Responses of bot protection and of healthy sites, each with its expected class. */
import type { BlockClass, BlockEvidence } from './signals.ts'

export interface BlockCase extends BlockEvidence {
  name: string
  class: BlockClass
  /** If omitted, any vendor. */
  vendor?: string
  isSuspect?: boolean
}

const SENTENCE = 'We look for an engineer who likes small teams, plain code and long walks by the river. '
const HTML = { 'content-type': 'text/html; charset=utf-8' }
const JSON_TYPE = { 'content-type': 'application/json' }

export const page = (title: string, body: string, head = ''): string =>
  `<!doctype html><html><head><title>${title}</title>${head}</head><body>${body}</body></html>`
/** A page with plenty of text. */
export const article = (more = '', title = 'Senior Engineer - Acme', head = ''): string =>
  page(title, `<main><h1>Senior Engineer</h1>${`<p>${SENTENCE}</p>`.repeat(30)}</main>${more}`, head)
/** The page of a single-page application: everything is in its script. */
const shell = (script: string): string =>
  page(
    'Careers',
    `<noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div><script>${script}</script>`,
  )

type Rest = Partial<Omit<BlockCase, 'name' | 'class' | 'status' | 'body'>>

const made = (name: string, cls: BlockClass, status: number, body: string, rest: Rest = {}): BlockCase => ({
  name,
  class: cls,
  status,
  body,
  url: 'https://a.test/jobs/1',
  ...rest,
  headers: { ...HTML, ...rest.headers },
})

const BLOCKED: BlockCase[] = [
  made('Cloudflare says so in a header', 'challenge', 403, page('', ''), { vendor: 'cloudflare', headers: { 'cf-mitigated': 'challenge' } }),
  made('Cloudflare challenge with 200', 'challenge', 200, page('Just a moment...', '<script>window._cf_chl_opt={cvId:"3"}</script>'), { vendor: 'cloudflare' }),
  made('Cloudflare challenge with nothing but its title', 'challenge', 403, page('Just a moment...', 'a.test'), { vendor: 'cloudflare' }),
  made('Cloudflare attention required', 'blocked', 403, page('Attention Required! | Cloudflare', '<div id="cf-error-details"><h1>Sorry, you have been blocked</h1></div>'), { vendor: 'cloudflare' }),
  made('Cloudflare 1009 by country', 'geo', 403, page('Access denied', '<div id="cf-error-details"><span class="cf-error-code">1009</span></div>'), { vendor: 'cloudflare' }),
  made('Cloudflare 1010 as text', 'blocked', 403, 'error code: 1010', { vendor: 'cloudflare', headers: { 'content-type': 'text/plain' } }),
  made('Cloudflare 1015 with 200', 'rate_limit', 200, 'error code: 1015', { vendor: 'cloudflare', headers: { 'content-type': 'text/plain' } }),
  made('Cloudflare 1015 page', 'rate_limit', 429, page('Rate limited', '<div id="cf-error-details">Error 1015 You are being rate limited</div>'), { vendor: 'cloudflare' }),
  made('Turnstile in place of the page', 'captcha', 403, page('Verify', '<div class="cf-turnstile" data-sitekey="x"></div>'), { vendor: 'turnstile' }),
  made('Turnstile challenge with its title', 'challenge', 200, page('Just a moment...', '<script src="https://challenges.cloudflare.com/turnstile/v0/api.js"></script>'), { vendor: 'cloudflare' }),
  made('DataDome interstitial with 200', 'captcha', 200, "<html><head><script>var dd={'rt':'i','host':'geo.captcha-delivery.com'}</script></head></html>", { vendor: 'datadome' }),
  made('DataDome JSON with 200', 'captcha', 200, '{"url":"https://geo.captcha-delivery.com/captcha/?initialCid=x"}', { vendor: 'datadome', headers: JSON_TYPE }),
  made('DataDome cookie with 403', 'captcha', 403, '', { vendor: 'datadome', headers: { 'set-cookie': ['datadome=x; Path=/'] } }),
  made('DataDome client id with 403', 'captcha', 403, '<html></html>', { vendor: 'datadome', headers: { 'x-datadome-cid': 'AHrlqAAA' } }),
  made('PerimeterX press and hold', 'captcha', 403, page('Access to this page has been denied', '<div id="px-captcha"></div>'), { vendor: 'perimeterx' }),
  made('PerimeterX with 200', 'captcha', 200, page('Robot or human?', '<div id="px-captcha"></div><p>Press &amp; Hold</p>'), { vendor: 'perimeterx' }),
  made('PerimeterX JSON', 'captcha', 403, '{"appId":"PXabc","jsClientSrc":"/x/init.js","blockScript":"/x/captcha/captcha.js"}', { vendor: 'perimeterx', headers: JSON_TYPE }),
  made('PerimeterX cookie with 403', 'captcha', 403, 'no', { vendor: 'perimeterx', headers: { 'set-cookie': '_pxhd=abc; Path=/' } }),
  made('PerimeterX blocked URL', 'captcha', 200, page('Robot or human?', 'Activate and hold the button'), { vendor: 'perimeterx', url: 'https://a.test/blocked?url=L2pvYnM=&uuid=1' }),
  made('Akamai access denied', 'blocked', 403, '<HTML><HEAD><TITLE>Access Denied</TITLE></HEAD><BODY><H1>Access Denied</H1>You don\'t have permission to access "http&#58;&#47;&#47;a" on this server.<P>Reference&#32;&#35;18&#46;abc</BODY></HTML>', { vendor: 'akamai', headers: { server: 'AkamaiGHost' } }),
  made('Akamai crypto challenge', 'challenge', 428, '{"sec-cp-challenge":"true","cpr_chlge":"true"}', { vendor: 'akamai', headers: JSON_TYPE }),
  made('Akamai plain 403', 'blocked', 403, '', { vendor: 'akamai', headers: { server: 'AkamaiGHost' } }),
  made('AWS WAF props with 202', 'challenge', 202, page('', '<script>window.gokuProps={"key":"x"}</script>'), { vendor: 'aws-waf' }),
  made('AWS WAF script with 405', 'captcha', 405, page('Human Verification', '<script src="https://a.edge.captcha.awswaf.com/a/captcha.js"></script>'), { vendor: 'aws-waf' }),
  made('CloudFront blocks', 'blocked', 403, page('ERROR: The request could not be satisfied', '<h1>403 ERROR</h1>The request could not be satisfied. Request blocked.'), { vendor: 'cloudfront', headers: { 'x-cache': 'Error from cloudfront' } }),
  made('CloudFront by country', 'geo', 403, page('ERROR: The request could not be satisfied', 'The request could not be satisfied. The Amazon CloudFront distribution is configured to block access from your country.'), { vendor: 'cloudfront' }),
  made('Imperva: one script and nothing else', 'challenge', 200, '<html><head><META NAME="ROBOTS" CONTENT="NOINDEX"><script src="/_Incapsula_Resource?SWJIYLWA=71"></script></head><body></body></html>', { vendor: 'imperva' }),
  made('Imperva cookie with 403', 'blocked', 403, '', { vendor: 'imperva', headers: { 'set-cookie': ['incap_ses_1=x', 'visid_incap_2=y'] } }),
  made('Imperva pardon our interruption', 'blocked', 200, page('Pardon Our Interruption', '<h1>Pardon Our Interruption...</h1>As you were browsing something about your browser made us think you were a bot.'), { vendor: 'imperva' }),
  made('Kasada 429', 'challenge', 429, '<html><body><script>window.KPSDK={};KPSDK.now=1</script><script src="/149e9513/ips.js?x-kpsdk-im=1"></script></body></html>', { vendor: 'kasada', headers: { 'x-kpsdk-ct': 'abc' } }),
  made('Kasada header with 429', 'challenge', 429, '', { vendor: 'kasada', headers: { 'x-kpsdk-ct': 'abc' } }),
  made('F5 header', 'blocked', 403, '', { vendor: 'f5', headers: { 'x-a1b2c3d4-f': 'x' } }),
  made('F5 request rejected with 200', 'blocked', 200, '<html><head><title>Request Rejected</title></head><body>The requested URL was rejected. Please consult with your administrator.<br>Your support ID is: 123</body></html>', { vendor: 'f5' }),
  made('Google sorry page', 'captcha', 429, page('https://www.google.com/search', '<form id="captcha-form"><div class="g-recaptcha"></div></form>'), { vendor: 'google', url: 'https://www.google.com/sorry/index?continue=x' }),
  made('Google captcha form with 200', 'captcha', 200, page('Google', '<form id="captcha-form"><div id="recaptcha" class="g-recaptcha"></div></form>'), { vendor: 'google' }),
  made('Google consent', 'consent', 200, article('', 'Before you continue'), { vendor: 'google', url: 'https://consent.google.com/ml?continue=x' }),
  made('Google shell without script', 'challenge', 200, page('Google Search', '<noscript><meta http-equiv="refresh" content="0;url=/httpservice/retry/enablejs?sei=x"></noscript>'), { vendor: 'google', url: 'https://www.google.com/search?q=jobs&udm=8' }),
  made('reCAPTCHA with 403', 'captcha', 403, page('a.test', '<script src="https://www.google.com/recaptcha/api.js"></script>'), { vendor: 'recaptcha' }),
  made('hCaptcha with 503', 'captcha', 503, page('a.test', '<div class="h-captcha" data-sitekey="x"></div><script src="https://js.hcaptcha.com/1/api.js"></script>'), { vendor: 'hcaptcha' }),
  made('Arkose with 403', 'captcha', 403, page('a.test', '<script src="https://client-api.arkoselabs.com/v2/api.js"></script>'), { vendor: 'arkose' }),
  made('GeeTest with 403', 'captcha', 403, page('a.test', '<script src="https://static.geetest.com/v4/gt4.js"></script>'), { vendor: 'geetest' }),
  made('Friendly Captcha with 429', 'captcha', 429, page('a.test', '<div class="frc-captcha"></div>'), { vendor: 'friendly-captcha' }),
  made('Anubis with 200', 'challenge', 200, page('Making sure you&#39;re not a bot!', '<script id="anubis_challenge" type="application/json">{}</script>'), { vendor: 'anubis' }),
  made('Vercel header with 429', 'challenge', 429, '', { vendor: 'vercel', headers: { 'x-vercel-mitigated': 'challenge' } }),
  made('Vercel denies', 'blocked', 403, '', { vendor: 'vercel', headers: { 'x-vercel-mitigated': 'deny' } }),
  made('Sucuri firewall', 'blocked', 403, page('Sucuri WebSite Firewall - Access Denied', '<h1>Access Denied - Sucuri Website Firewall</h1>'), { vendor: 'sucuri' }),
  made('Sucuri script with 307', 'challenge', 200, page('You are being redirected...', '<script>var s={},sucuri_cloudproxy_js=""</script>'), { vendor: 'sucuri' }),
  made('DDoS-Guard', 'challenge', 403, page('DDOS-GUARD', '<h1>Checking your browser before accessing a.test</h1>'), { vendor: 'ddos-guard' }),
  made('Reblaze', 'challenge', 200, '<html><head><script>window.rbzns={hosts:"a.test"}</script></head><body></body></html>', { vendor: 'reblaze', headers: { 'set-cookie': 'rbzid=abc' } }),
  made('Reblaze cookie and a script alone', 'challenge', 200, '<html><head><script src="/c3650cdf.js"></script></head></html>', { vendor: 'reblaze', headers: { 'set-cookie': ['rbzid=abc; path=/'] } }),
  made('FullStory client challenge', 'challenge', 200, page('Client Challenge', '<script src="/x.js"></script>'), { vendor: 'fullstory' }),
  made('LinkedIn authwall', 'login_wall', 200, article('', 'Sign Up | LinkedIn'), { vendor: 'linkedin', url: 'https://www.linkedin.com/authwall?trk=x' }),
  made('LinkedIn checkpoint', 'login_wall', 200, article(), { vendor: 'linkedin', url: 'https://www.linkedin.com/checkpoint/challenge/x' }),
  made('LinkedIn authwall behind a redirect', 'login_wall', 302, '', { vendor: 'linkedin', url: 'https://www.linkedin.com/jobs/view/1', headers: { location: '/authwall?trk=x' } }),
  made('LinkedIn authwall by script', 'login_wall', 200, '<html><head><script>window.location.href="https://" + d + "/authwall?trk="</script></head></html>', { vendor: 'linkedin', url: 'https://www.linkedin.com/jobs/view/1' }),
  made('Indeed security check', 'captcha', 403, page('Security Check - Indeed.com', 'Find jobs'), { vendor: 'indeed', url: 'https://www.indeed.com/jobs?q=x' }),
  made('Indeed additional verification', 'captcha', 200, page('Indeed', '<h1>Additional Verification Required</h1>Your Ray ID for this request is x'), { vendor: 'indeed', url: 'https://www.indeed.com/jobs?q=x' }),
  made('Indeed bot detection URL', 'captcha', 200, article(), { vendor: 'indeed', url: 'https://secure.indeed.com/auth?from=bot-detection-jobsearch' }),
  made('ZipRecruiter forbidden aa', 'blocked', 403, '{"status_code":403,"error_code":"forbidden aa"}', { vendor: 'ziprecruiter', headers: JSON_TYPE }),
  made('Glassdoor', 'challenge', 403, article('', 'Help Us Protect Glassdoor'), { vendor: 'glassdoor' }),
  made('plain 429', 'rate_limit', 429, '{"error":"Too Many Requests"}', { headers: { ...JSON_TYPE, 'retry-after': '5' } }),
  made('plain 403', 'blocked', 403, '<html><head><title>403 Forbidden</title></head><body><center><h1>403 Forbidden</h1></center><hr>nginx</body></html>'),
  made('teapot', 'blocked', 418, ''),
  made('451', 'geo', 451, 'Unavailable For Legal Reasons'),
  made('short 200 that denies', 'blocked', 200, page('Access Denied', '<h1>Access Denied</h1><p>Contact the owner.</p>')),
  made('short 200 with automated queries', 'blocked', 200, page('Sorry', 'Your network may be sending automated queries. To protect our users, we cannot process your request.')),
  made('short 200 about humans', 'captcha', 200, page('Hold on', 'Please verify you are human by completing the action below.')),
  made('short 200 with a blocked address', 'blocked', 200, page('Oops', 'Your IP address has been temporarily blocked because of too many page views.')),
  made('short 200 asking for fewer requests', 'rate_limit', 200, 'Too many requests. Try again in a minute.', { headers: { 'content-type': 'text/plain' } }),
  made('JSON 200 over the limit', 'rate_limit', 200, '{"error":"Rate limit exceeded"}', { headers: JSON_TYPE }),
  made('503 that says it is about us', 'blocked', 503, page('Sorry', 'We have detected unusual activity from your network.')),
  made('404 by a challenge', 'challenge', 404, '', { vendor: 'cloudflare', headers: { 'cf-mitigated': 'challenge' } }),
  made('login it was sent to', 'login_wall', 200, page('Sign in', '<form><input name=u><input type="password"></form>'), { url: 'https://a.test/login?next=%2Fjobs%2F1' }),
  made('Wordfence', 'blocked', 503, page('Your access to this site has been limited', '<p>Your access to this site has been limited by the site owner</p><p>Generated by Wordfence</p>'), { vendor: 'wordfence' }),
] // biome-ignore format: a table reads best with one answer a line

const HEALTHY: BlockCase[] = [
  made('Cloudflare headers on a page', 'none', 200, article(), { headers: { server: 'cloudflare', 'cf-ray': '8a', 'set-cookie': ['__cf_bm=x', 'cf_clearance=y'] } }),
  made('Turnstile in an apply form', 'none', 200, article('<form><div class="cf-turnstile"></div></form><script src="https://challenges.cloudflare.com/turnstile/v0/api.js"></script>')),
  made('hCaptcha in a form', 'none', 200, article('<div class="h-captcha"></div><script src="https://hcaptcha.com/1/api.js"></script>')),
  made('a job whose text names the words', 'none', 200, article('<p>You handle access denied pages, too many requests, unusual traffic, and verify you are human checks.</p>')),
  made('a short job about bots', 'none', 200, page('Bot Detection Engineer', '<h1>Bot Detection Engineer</h1><p>You know web application firewalls, rate limiting, automation tools and how to spot suspicious activity. Access denied pages are your trade. Apply by mail.</p>')),
  made('a short job with its data', 'none', 200, page('Fraud Analyst', '<p>We have detected unusual traffic? You find out why.</p>', '<script type="application/ld+json">{"@type":"JobPosting","title":"Fraud Analyst"}</script>')),
  made('a job with a blocking title', 'none', 200, page('Access Denied Specialist - Acme', '<p>Short text.</p>')),
  made('DataDome on a page', 'none', 200, article('<script src="https://js.datadome.co/tags.js"></script>'), { headers: { 'x-datadome': 'protected', 'set-cookie': 'datadome=x', 'x-datadome-cid': 'a' } }),
  made('DataDome in the policy of a shell', 'none', 200, page('Careers', '<div id="root"></div>', '<meta http-equiv="Content-Security-Policy" content="frame-src *.captcha-delivery.com; script-src self">'), { isSuspect: true }),
  made('PerimeterX sensor on a page', 'none', 200, article('<script>window._pxAppId="PXabc"</script>'), { headers: { 'set-cookie': ['_px3=x', '_pxhd=y'] } }),
  made('PerimeterX sensor in a shell', 'none', 200, shell('window._pxAppId="PXabc";')),
  made('Akamai cookie on a page', 'none', 200, article('<script src="/akam/13/abc"></script>'), { headers: { server: 'AkamaiGHost', 'set-cookie': '_abck=x' } }),
  made('Imperva script on a page', 'none', 200, article('<script src="/_Incapsula_Resource?SWJIYLWA=71"></script>'), { headers: { 'x-iinfo': '1-2', 'set-cookie': 'visid_incap_1=x' } }),
  made('Imperva script on a large shell', 'none', 200, shell(`${'var a=1;'.repeat(13_000)}//_Incapsula_Resource?incident_id=1`)),
  made('AWS WAF integration on a page', 'none', 200, article('<script src="https://x.token.awswaf.com/x/challenge.js"></script>'), { headers: { 'set-cookie': 'aws-waf-token=x' } }),
  made('Kasada header on an answer of an API', 'none', 200, '{"jobs":[{"id":1}]}', { headers: { ...JSON_TYPE, 'x-kpsdk-ct': 'x' } }),
  made('a header that looks like one of F5', 'none', 200, article(), { headers: { 'x-frontend-a': '1' } }),
  made('DDoS-Guard server on a page', 'none', 200, article(), { headers: { server: 'ddos-guard', 'set-cookie': '__ddg1_=x' } }),
  made('Reblaze cookie on a page', 'none', 200, article('<script src="/a.js"></script>'), { headers: { 'set-cookie': 'rbzid=x' } }),
  made('the shell of an application', 'none', 200, shell('window.__STATE__={"text":"please verify you are human, access denied"}')),
  made('a widget and little else', 'none', 200, page('Contact', '<form>Write to us<div class="g-recaptcha"></div></form>'), { isSuspect: true }),
  made('an empty page', 'none', 200, '', { isSuspect: true }),
  made('a page without anything', 'none', 200, '<html><head></head><body></body></html>', { isSuspect: true }),
  made('the end of a list', 'none', 200, '<!DOCTYPE html><!---->', { url: 'https://www.linkedin.com/jobs-guest/jobs/api/seeMoreJobPostings/search?start=50' }),
  made('LinkedIn guest page with links to the wall', 'none', 200, article('<a href="https://www.linkedin.com/authwall?x">Join</a>'), { url: 'https://www.linkedin.com/jobs/view/1' }),
  made('an answer of an API that names the words', 'none', 200, JSON.stringify({ jobs: [{ title: 'Access denied', text: SENTENCE }] }), { headers: JSON_TYPE }),
  made('an empty list', 'none', 200, '{"jobs":[],"meta":{"total":0}}', { headers: JSON_TYPE }),
  made('a feed', 'none', 200, '<?xml version="1.0"?><rss><channel><title>Jobs</title><item><title>Access denied</title></item></channel></rss>', { headers: { 'content-type': 'application/rss+xml' } }),
  made('no content', 'none', 204, ''),
  made('404 behind Cloudflare', 'gone', 404, page('Not found', '<div class="cf-turnstile"></div>'), { headers: { server: 'cloudflare' } }),
  made('410', 'gone', 410, ''),
  made('a closed requisition of Workday', 'gone', 403, '{"errorCode":"S22","message":"permission denied","httpStatus":403}', { headers: JSON_TYPE, url: 'https://t.wd1.myworkdayjobs.com/wday/cxs/t/s/job/X_R1' }),
  made('403 that says it is filled', 'gone', 403, page('Sorry', 'This position has been filled.')),
  made('401 of an API', 'none', 401, '{"error":"access denied"}', { headers: { ...JSON_TYPE, 'www-authenticate': 'Bearer' } }),
  made('403 that wants a token', 'none', 403, '{"error":"insufficient_scope"}', { headers: { ...JSON_TYPE, 'www-authenticate': 'Bearer error="insufficient_scope"' } }),
  made('maintenance', 'none', 503, page('Scheduled maintenance', 'We will be back at noon. Please try again later.'), { headers: { 'retry-after': '3600', server: 'cloudflare' } }),
  made('Cloudflare cannot reach the site', 'none', 522, page('a.test | 522: Connection timed out', '<div id="cf-error-details"><span class="cf-error-code">522</span>Error code 522</div>'), { headers: { server: 'cloudflare' } }),
  made('CloudFront cannot reach the site', 'none', 502, page('ERROR: The request could not be satisfied', 'The request could not be satisfied. We can\'t connect to the server.'), { headers: { 'x-cache': 'Error from cloudfront' } }),
  made('Cloudflare 1016', 'none', 530, 'error code: 1016', { headers: { 'content-type': 'text/plain' } }),
  made('500', 'none', 500, page('Error', 'Internal server error')),
  made('400 past the end', 'none', 400, ''),
  made('405', 'none', 405, 'Method Not Allowed'),
  made('a login page asked for', 'none', 200, page('Sign in', '<form><input type="password"></form>'), { url: 'https://a.test/login' }),
  made('a page with a login in its head', 'none', 200, article('<form><input type="password"></form>'), { url: 'https://a.test/jobs?next=2' }),
  made('a page called captcha', 'none', 200, article('', 'CAPTCHA Engineer - Acme'), { url: 'https://a.test/jobs/captcha-engineer' }),
  made('a picture', 'none', 200, '\x89PNG captcha-delivery.com/', { headers: { 'content-type': 'image/png' } }),
  made('a page with a cookie banner', 'none', 200, article('<div id="consent">Before you continue, accept cookies</div>')),
] // biome-ignore format: a table reads best with one answer a line

export const BLOCK_CASES: readonly BlockCase[] = [...BLOCKED, ...HEALTHY]
