/**
 * What block pages, challenges and walls look like, most certain first. All texts are in lower case, as the check reads them.
 *
 * A sign in the body or title counts on a refusal, or on a 2xx page with almost no text: the same scripts appear in the forms
 * and heads of healthy pages.
 */

export type BlockClass =
  | 'none'
  | 'rate_limit'
  | 'challenge'
  | 'captcha'
  | 'blocked'
  | 'login_wall'
  | 'geo'
  | 'consent'
  | 'gone'

export interface BlockEvidence {
  /** The final URL, after redirects. */
  url: string
  status: number
  headers: Readonly<Record<string, string | string[] | undefined>>
  body: string | Buffer
}

export interface BlockVerdict {
  class: BlockClass
  /** `cloudflare`, `linkedin`, … or `unknown`. */
  vendor: string
  /** What gave it away, for people to read. */
  signal: string
  /** 0 to 1. */
  confidence: number
  /** Not a block by itself, but not what a page should be: an empty 200, or a CAPTCHA widget and little else. Worth counting. */
  isSuspect?: true
}

export interface Sign {
  readonly vendor: string
  readonly class: BlockClass
  /** 0 to 1. */
  readonly confidence: number
}

export const sign = (vendor: string, cls: BlockClass, confidence: number): Sign => ({ vendor, class: cls, confidence })

/** Vendor unknown: only the wording or the status shows the block. */
export const UNKNOWN_VENDOR = 'unknown'

/** Headers that are proof by themselves, whatever else was sent. If `value` is omitted, any value counts. */
export const HEADER_SIGNS: readonly (Sign & { header: string; value?: RegExp })[] = [
  { ...sign('cloudflare', 'challenge', 1), header: 'cf-mitigated', value: /challenge/ },
  { ...sign('cloudflare', 'blocked', 1), header: 'cf-mitigated' },
  { ...sign('vercel', 'challenge', 1), header: 'x-vercel-mitigated', value: /challenge/ },
  { ...sign('vercel', 'blocked', 1), header: 'x-vercel-mitigated' },
  { ...sign('datadome', 'captcha', 1), header: 'x-dd-b', value: /^[12]$/ },
  { ...sign('aws-waf', 'captcha', 1), header: 'x-amzn-waf-action', value: /captcha/ },
  { ...sign('aws-waf', 'challenge', 1), header: 'x-amzn-waf-action', value: /challenge/ },
  { ...sign('aws-waf', 'blocked', 1), header: 'x-amzn-waf-action' },
  { ...sign('sucuri', 'blocked', 1), header: 'x-sucuri-block' },
  { ...sign('kasada', 'challenge', 1), header: 'x-kasada-challenge' },
  { ...sign('anubis', 'challenge', 1), header: 'x-anubis-status', value: /challenge/ },
]

/** Header names that come with refusals, and sometimes with healthy pages: a page with real text or data outweighs them. */
export const THIN_HEADER_SIGNS: readonly (Sign & { name: RegExp })[] = [
  { ...sign('kasada', 'challenge', 0.95), name: /^x-kpsdk-[a-z]+$/ },
  { ...sign('datadome', 'captcha', 0.9), name: /^x-datadome-cid$/ },
  { ...sign('f5', 'blocked', 0.9), name: /^x-[a-z0-9]{8}-[abcdfz]$/ },
]

/** Cookies that bot protection sets for every visitor: they only identify the vendor of a refusal. */
export const COOKIE_SIGNS: readonly (Sign & { cookie: string })[] = [
  { ...sign('datadome', 'captcha', 0.9), cookie: 'datadome=' },
  { ...sign('perimeterx', 'captcha', 0.9), cookie: '_px3=' },
  { ...sign('perimeterx', 'captcha', 0.9), cookie: '_pxhd=' },
  { ...sign('imperva', 'blocked', 0.9), cookie: 'visid_incap_' },
  { ...sign('imperva', 'blocked', 0.9), cookie: 'incap_ses_' },
  { ...sign('imperva', 'challenge', 0.9), cookie: 'reese84=' },
  { ...sign('reblaze', 'challenge', 0.9), cookie: 'rbzid=' },
  { ...sign('aws-waf', 'blocked', 0.8), cookie: 'aws-waf-token=' },
  { ...sign('akamai', 'blocked', 0.8), cookie: '_abck=' },
  { ...sign('cloudflare', 'blocked', 0.7), cookie: '__cf_bm=' },
]

/** URLs that redirects lead to instead of the page. If `host` is omitted, any host counts. */
export const URL_SIGNS: readonly (Sign & { host?: RegExp; path: RegExp })[] = [
  {
    ...sign('linkedin', 'login_wall', 1),
    host: /(?:^|\.)linkedin\.com$/,
    path: /^\/(?:authwall|checkpoint|uas\/login|signup|login)(?:[/?]|$)/,
  },
  { ...sign('google', 'captcha', 1), host: /(?:^|\.)google\.[a-z.]+$/, path: /^\/sorry(?:[/?]|$)/ },
  { ...sign('google', 'consent', 1), host: /^consent\.(?:google|youtube)\.[a-z.]+$/, path: /^\// },
  { ...sign('yahoo', 'consent', 1), host: /^(?:consent\.yahoo\.com|guce\..+|consent\..+)$/, path: /^\/(?:v2\/)?(?:collectconsent|consent)/i }, // biome-ignore format: one sign
  {
    ...sign('indeed', 'captcha', 1),
    host: /(?:^|\.)indeed\.[a-z.]+$/,
    path: /bot-detection|^\/(?:captcha|challenge)\b/,
  },
  { ...sign('datadome', 'captcha', 1), host: /(?:^|\.)captcha-delivery\.com$/, path: /^\// },
  { ...sign('radware', 'captcha', 1), host: /(?:^|\.)perfdrive\.com$/, path: /^\// },
  { ...sign('alibaba', 'captcha', 1), path: /\/punish\?.*x5secdata|\/_____tmd_____\// },
  { ...sign('yandex', 'captcha', 1), host: /(?:^|\.)(?:yandex|ya)\.[a-z.]+$/, path: /^\/showcaptcha/ },
  { ...sign('siteground', 'captcha', 1), path: /^\/\.well-known\/sgcaptcha/ },
  { ...sign('perimeterx', 'captcha', 0.95), path: /^\/blocked\?.*(?:url|uuid|vid)=/ },
  { ...sign('imperva', 'captcha', 0.95), path: /^\/distil_r_(?:captcha|blocked)/ },
]

/** Paths of bot-protection pages: a 2xx page with little text at such a path is one of them. */
export const CHECK_PATH =
  /^\/(?:captcha|captchacheck|challenge|botcheck|bot-check|robot-check|are-you-human|human-verification|verify-human)(?:\.\w{2,5})?(?:[/?]|$)/

export const LOGIN_PATH =
  /^\/(?:[a-z-]{2,12}\/)?(?:log-?in|sign-?in|sign_in|auth\/login|users\/sign_in|session\/new)(?:[/?.]|$)/
/** Where to return after the login: its presence shows that we were redirected here from a page. */
export const RETURN_PARAMETER =
  /[?&](?:next|return|return_?to|return_?url|redirect|redirect_?to|redirect_?ur[il]|continue|dest(?:ination)?|from|goto|back_?url|session_redirect|rurl)=/i

/** The whole title, or its start up to a separator. */
export const TITLE_SIGNS: readonly (Sign & { title: RegExp })[] = [
  { ...sign('cloudflare', 'challenge', 0.98), title: /^just a moment(?:\.{3}|…)?$/ },
  { ...sign('cloudflare', 'blocked', 0.98), title: /^attention required! ?(?:\||&#124;|$)/ },
  { ...sign('cloudflare', 'blocked', 0.95), title: /\bused cloudflare to\b/ },
  { ...sign('ddos-guard', 'challenge', 0.98), title: /^ddos-guard$/ },
  { ...sign('fullstory', 'challenge', 0.95), title: /^client challenge$/ },
  { ...sign('vercel', 'challenge', 0.98), title: /^vercel security checkpoint$/ },
  { ...sign('anubis', 'challenge', 0.95), title: /^making sure you(?:'|’|&#39;)re not a bot!?$/ },
  { ...sign('sucuri', 'blocked', 0.98), title: /^sucuri website firewall/ },
  { ...sign('sucuri', 'challenge', 0.9), title: /^you are being redirected(?:\.{3})?$/ },
  { ...sign('imperva', 'blocked', 0.98), title: /^pardon our interruption/ },
  { ...sign('perimeterx', 'blocked', 0.95), title: /^access to this page has been denied/ },
  { ...sign('f5', 'blocked', 0.95), title: /^request rejected$/ },
  { ...sign('amazon', 'captcha', 0.95), title: /^robot check$/ },
  { ...sign('indeed', 'captcha', 0.98), title: /^security check - indeed/ },
  { ...sign('glassdoor', 'challenge', 0.98), title: /^help us protect glassdoor/ },
  {
    ...sign('linkedin', 'login_wall', 0.9),
    title: /^(?:sign up|join linkedin|linkedin login.*|sign in) ?\| ?linkedin$/,
  },
  { ...sign('instagram', 'login_wall', 0.95), title: /^log ?in (?:•|·|â€¢|â\S{2}|\S{1,8}) instagram$/ },
  { ...sign('google', 'consent', 0.95), title: /^before you continue(?: to (?:google|youtube)[a-z ]*)?$/ },
  {
    ...sign(UNKNOWN_VENDOR, 'challenge', 0.9),
    title: /^(?:one moment, please|checking your browser|ddos protection by|browser check$|verifying your browser)/,
  },
  {
    ...sign(UNKNOWN_VENDOR, 'captcha', 0.9),
    title:
      /^(?:human verification|are you (?:a )?(?:human|robot)|captcha(?: challenge| verification| check| required)?|bot (?:verification|detected|check)|robot verification|(?:please )?verify (?:that )?you(?:'re| are) (?:a )?human|security (?:check|verification|challenge)|please verify|prove you(?:'re| are) human)(?=[\s.!?…]*(?:$|[|:–—-]))/,
  },
  {
    ...sign(UNKNOWN_VENDOR, 'rate_limit', 0.9),
    title:
      /^(?:(?:error )?429\b[\s:–-]*)?(?:too many requests|rate limit(?:ed| exceeded| reached))(?=[\s.!]*(?:$|[|:–—-]))/,
  },
  {
    ...sign(UNKNOWN_VENDOR, 'blocked', 0.9),
    title:
      /^(?:(?:error )?\d{3}\b[\s:–-]*)?(?:access (?:is |was |has been )?(?:denied|blocked|forbidden|restricted)|blocked|you (?:have been|are|were) blocked|(?:your )?request (?:was |has been )?(?:blocked|denied|rejected)|forbidden|your (?:access|ip|ip address) (?:has been|was|is) (?:blocked|denied)|zugriff verweigert|acc\S{1,2}s refus\S{1,2}|acceso denegado|accesso negato)(?=[\s.!]*(?:$|[|:–—-]))/,
  },
]

/** Phrases on short block pages. Each list is one expression, with nothing in it that can backtrack. */
export const PHRASE_SIGNS: readonly (Sign & { phrase: RegExp; isWeak?: true })[] = [
  {
    ...sign(UNKNOWN_VENDOR, 'geo', 0.85),
    phrase:
      /(?:not|n't|n’t|un)\s?(?:currently )?available (?:in|to|from) (?:your (?:country|region|location|area)|the european union|users in the e|most european|visitors from)|unavailable for legal reasons|not available to users in (?:the eu|europe)|blocked in your (?:country|region)|block access from your (?:country|region|location)/,
  },
  {
    ...sign(UNKNOWN_VENDOR, 'captcha', 0.85),
    phrase:
      /(?:verify|confirm|prove|ensure|check|sure)(?: that)? you(?:'re| are|’re|&#39;re) (?:a )?(?:real )?(?:human|not a (?:ro)?bot|a real person|a person)|are you (?:a )?(?:human|robot)\?|(?:i am|i'm|i’m) not a robot|(?:complete|solve|enter|pass) (?:the|this|a) (?:captcha|security check)|press (?:&|&amp;|and) hold|(?:enter|type) the characters you see|additional verification required|verification required to access/,
  },
  {
    ...sign(UNKNOWN_VENDOR, 'challenge', 0.85),
    phrase:
      /checking (?:your browser|if the site connection is secure)|enable javascript and cookies to continue|needs to review the security of your connection|verifying (?:your browser|you are human)|performing security verification|ddos protection by/,
  },
  {
    ...sign(UNKNOWN_VENDOR, 'blocked', 0.85),
    phrase:
      /unusual traffic|automated (?:queries|traffic)|(?:detected|noticed) (?:some )?(?:unusual|suspicious|abnormal|automated|bot)|(?:unusual|suspicious|abnormal) (?:activity|requests?|behaviou?r) (?:from|coming from|on|in) (?:your|this)|you are using automat|you(?:r browser)? (?:are|appears? to be) (?:a bot|an automated|using an automated)|you (?:have been|were|have been temporarily) blocked|your (?:ip|ip address|access|request|computer|network|connection|browser) (?:has been|was|is) (?:temporarily |permanently |automatically )?(?:blocked|banned|blacklisted|denied|rejected|flagged|restricted)|ip (?:address )?(?:has been|was) (?:temporarily )?(?:blocked|banned)|blocked by (?:our|the|network) (?:security|firewall|waf|server|site owner)|this request was blocked|the request is blocked|access (?:to this (?:site|page|website|resource) )?has been (?:limited|denied|blocked)|security service to protect itself/,
  },
  {
    ...sign(UNKNOWN_VENDOR, 'rate_limit', 0.8),
    isWeak: true,
    phrase: /too many requests|rate limit(?:ed| exceeded| reached)|request limit (?:exceeded|reached)|quota exceeded/,
  },
  {
    ...sign(UNKNOWN_VENDOR, 'blocked', 0.75),
    isWeak: true,
    phrase:
      /access (?:is )?(?:denied|forbidden)|request blocked|permission to access|not authori[sz]ed to (?:view|access) this page/,
  },
]

/** A refusal with which a provider says that the page no longer exists. */
export const GONE_PHRASE =
  /"errorcode"\s*:\s*"s22"|no longer (?:available|accepting|exists|open|active|posted)|(?:position|job|posting|requisition|vacancy) (?:has been|is|was) (?:filled|closed|removed|expired|unposted|archived)/

/** What Cloudflare's own error codes mean for us; 1000 to 1004, 1013, 1014, 1016, 1018 and 5xx are problems of the site. */
export const CLOUDFLARE_CODES: Readonly<Record<string, BlockClass>> = {
  1005: 'blocked',
  1006: 'blocked',
  1007: 'blocked',
  1008: 'blocked',
  1009: 'geo',
  1010: 'blocked',
  1011: 'blocked',
  1012: 'blocked',
  1015: 'rate_limit',
  1020: 'blocked',
}
