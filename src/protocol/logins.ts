/** Removes user names and passwords from text that is displayed: a task may name a proxy with a login. */

/** `user:password@`, with a scheme or without. */
const LOGIN = /[^\s"'`/@:,{}]{1,256}:[^\s"'`/@]{1,256}@/g
/** A truncated text may end inside a login. */
const LOGIN_CUT = /[^\s"'`/@:,{}]{1,256}:[^\s"'`/@]{1,256}$/
/** `host:port:user:password`. */
const LOGIN_BEHIND = /(?<![\w.:-])([\w.-]{1,253}:\d{1,5}):[^\s"'`:,{}]{1,256}:[^\s"'`]{1,256}/g
/** The only other text of that shape. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:/

export function withoutLogins(text: string, { isCut = false } = {}): string {
  const shown = text
    .replace(LOGIN, '***@')
    .replace(LOGIN_BEHIND, (whole, place: string) => (TIME.test(whole) ? whole : `${place}:***`))
  return isCut ? shown.replace(LOGIN_CUT, '***') : shown
}
