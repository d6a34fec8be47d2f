/** Which names of fields, headers, query parameters and variables hold secrets, in any spelling. */

/** Where a name appears. The same word is a secret in one place and not in another: `?code=` in a URL, `code: 404` in a message. */
type NamePlace = 'field' | 'query' | 'text'

/** Anywhere in a name, even if its words are run together: `PGPASSWORD`, `clientsecret`. */
const STEM =
  /passw(?:or)?d|passphrase|passcode|secret(?!ar)|token(?!i[sz])|credential|authorization|signature|sess(?:ion)?_?id|csrf|xsrf|api_?key|(?:access|private|secret|signing|encryption|auth|master|account|session|service)_?key|auth_?(?:header|code)|session_?cookie|cookie_?header|connection_?string/

/** As the last word of a name, or the whole name: `dbPass`, `userPin`, `x-auth`. */
const LAST_WORD = /(?:^|_)(?:pass|passwd|pwd|pw|otp|totp|pin|jwt|bearer|cookies?|sid|sig|cvv)$/

/** Only as the whole name; longer names with these words are mostly harmless (`author`, `keyword`). */
const WHOLE: Record<NamePlace, RegExp> = {
  field: /^(?:key|auth|x_auth|set_cookie2?)$/,
  query: /^(?:key|auth|x_auth|code|ticket|session|p?assertion|samlresponse|oauth_verifier|hmac)$/,
  text: /^(?:x_auth)$/,
}

/** Metadata about a secret is not a secret: `tokenType`, `password_length`, `API_KEY_FILE`, `max_tokens`. */
const ABOUT =
  /(?:^|_)(?:type|types|count|length|limit|max|min|expires|expiry|expiration|ttl|policy|hint|field|file|path|strength|age|version|algorithm|method|header_name|name|endpoint|url|uri|usage|budget)$|^(?:max|min|num|total|has|is|prompt|completion|input|output)_.*tokens?$|(?:^|_)tokens$/

/** A cache: the same names of options, headers and fields come up again and again. */
const known: Record<NamePlace, Map<string, boolean>> = { field: new Map(), query: new Map(), text: new Map() }
const KNOWN_MAX = 2_000

export function isSecretName(name: string, place: NamePlace = 'field'): boolean {
  if (name.length > 128) return STEM.test(name.slice(0, 4096).toLowerCase())
  const answers = known[place]
  const answer = answers.get(name)
  if (answer !== undefined) return answer
  const words = wordsOf(name)
  const isSecret = !ABOUT.test(words) && (STEM.test(words) || LAST_WORD.test(words) || WHOLE[place].test(words))
  if (answers.size >= KNOWN_MAX) answers.clear()
  answers.set(name, isSecret)
  return isSecret
}

/** `X-Auth-Token`, `xAuthToken` and `x_auth_token` are the same name. */
function wordsOf(name: string): string {
  return name
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .replace(/[^A-Za-z\d]+/g, '_')
    .replace(/^_|_$/g, '')
    .toLowerCase()
}

/** A number under such a name is the secret itself; under others (`tokens: 512`) it counts something. */
export function isSecretNumberName(name: string): boolean {
  return /(?:^|_)(?:pin|otp|totp|cvv|passcode|password|secret)$/.test(wordsOf(name))
}

/** Names of headers that hold secrets: also recognised in flat lists, where a field list would be misread. */
export function isSecretHeader(name: string): boolean {
  return (
    /^(?:(?:proxy-)?authorization|(?:set-)?cookie2?|x-[\w-]{0,60})$/i.test(name) && isSecretName(name.replace(/2$/, ''))
  )
}
