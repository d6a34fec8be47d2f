/** Takes user names and passwords out of what is shown of a message: a task may name a proxy with them. */

/** `user:password@`, with a scheme or without. The end counts as well: a text that was cut may end inside of one. */
const LOGIN = /[^\s"'`/@:,{}]{1,256}:[^\s"'`/@]{1,256}(?:@|$)/g

export function withoutLogins(text: string): string {
  return text.replace(LOGIN, '***@')
}
