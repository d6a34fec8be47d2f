/** Arrays as PostgreSQL reads them. Faster than the driver's own, which looks at the type of every element; null when empty. */

export function numbersText(values: readonly (number | string)[]): string | null {
  return values.length === 0 ? null : `{${values.join(',')}}`
}

/** Null elements are NULL. An array of nothing else is null itself. */
export function textsText(values: readonly (string | null | undefined)[]): string | null {
  let text = ''
  let isNull = true
  for (const value of values) {
    if (value === null || value === undefined) {
      text += ',NULL'
      continue
    }
    isNull = false
    text += NEEDS_CARE.test(value) ? `,"${plainText(value).replace(/["\\]/g, '\\$&')}"` : `,"${value}"`
  }
  return isNull ? null : `{${text.slice(1)}}`
}

const NEEDS_CARE = /["\\\0]/

/** PostgreSQL's text cannot hold a NUL: it becomes the sign for a character that cannot be shown. */
function plainText(text: string): string {
  return text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text
}

/** `{1,2}` → [1, 2]. */
export function numbersOf(text: string | null): number[] {
  return text === null || text === '{}' ? [] : text.slice(1, -1).split(',').map(Number)
}
