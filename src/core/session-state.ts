/** How a site recognises a user: cookies and local storage, in the format that browser drivers call storage state. */

export interface SessionState {
  readonly cookies: readonly SessionCookie[]
  readonly origins: readonly OriginStorage[]
}

export interface SessionCookie {
  readonly name: string
  readonly value: string
  /** A leading dot includes subdomains. */
  readonly domain: string
  readonly path: string
  /** Epoch seconds; -1 for a session cookie. */
  readonly expires: number
  readonly httpOnly: boolean
  readonly secure: boolean
  readonly sameSite?: 'Strict' | 'Lax' | 'None'
}

export interface OriginStorage {
  readonly origin: string
  readonly localStorage: readonly { readonly name: string; readonly value: string }[]
}
