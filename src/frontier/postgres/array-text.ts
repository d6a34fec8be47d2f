/** Array literals for PostgreSQL; null if empty. Faster than the driver's own, which checks the type of every element. */

export function numbersText(values: readonly (number | string)[]): string | null {
  return values.length === 0 ? null : `{${values.join(',')}}`
}

/** Null elements become NULL. An array of only nulls becomes null. */
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

/** PostgreSQL text cannot contain NUL: it becomes the replacement character. */
function plainText(text: string): string {
  return text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text
}

/** `{1,2}` → [1, 2]. */
export function numbersOf(text: string | null): number[] {
  return text === null || text === '{}' ? [] : text.slice(1, -1).split(',').map(Number)
}
