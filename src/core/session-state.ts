/** What a site knows a user by: cookies and local storage, in the shape that browser drivers call storage state. */

export interface SessionState {
  readonly cookies: readonly SessionCookie[]
  readonly origins: readonly OriginStorage[]
}

export interface SessionCookie {
  readonly name: string
  readonly value: string
  /** With a leading dot: for its subdomains, too. */
  readonly domain: string
  readonly path: string
  /** Epoch seconds; -1 for one that ends with the session. */
  readonly expires: number
  readonly httpOnly: boolean
  readonly secure: boolean
  readonly sameSite?: 'Strict' | 'Lax' | 'None'
}

export interface OriginStorage {
  readonly origin: string
  readonly localStorage: readonly { readonly name: string; readonly value: string }[]
}
