/** Turns what a handler emitted into a row of the item log: checked against the schema, one line of JSON, with its key. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { ScrapeError } from '../core/errors.ts'
import { contentKey, type ItemRow } from '../core/item.ts'

/** Checks one emitted value against the scraper's schema. */
export type ItemCheck = (value: unknown) => { ok: true; value: object } | { ok: false; problems: string[] }

type Issue = StandardSchemaV1.Issue

/** Any Standard Schema that validates synchronously: zod, valibot, arktype … */
export function compileItemCheck(schema: StandardSchemaV1): ItemCheck {
  const validate = isZod(schema) ? zodValidate(schema) : standardValidate(schema)
  return (value) => {
    const result = validate(value)
    if (result.issues !== undefined) return { ok: false, problems: result.issues.map(problemOf) }
    const output: unknown = result.value
    if (typeof output !== 'object' || output === null || Array.isArray(output)) {
      return { ok: false, problems: [`item: expected an object, received ${kindOf(output)}`] }
    }
    return { ok: true, value: output }
  }
}

/** Zod's own method saves one wrapper object per item, and its error class tells that a check is asynchronous. */
interface Zod {
  safeParse(value: unknown): { success: true; data: unknown } | { success: false; error: { issues: readonly Issue[] } }
}

function isZod(schema: object): schema is Zod {
  return '_zod' in schema && 'safeParse' in schema && typeof schema.safeParse === 'function'
}

type Result = { value: unknown; issues?: undefined } | { issues: readonly Issue[] }

function zodValidate(schema: Zod): (value: unknown) => Result {
  return (value) => {
    try {
      const result = schema.safeParse(value)
      return result.success ? { value: result.data } : { issues: result.error.issues }
    } catch (error) {
      if (error instanceof Error && error.constructor.name === '$ZodAsyncError') throw asyncSchema(error)
      throw error
    }
  }
}

function standardValidate(schema: StandardSchemaV1): (value: unknown) => Result {
  const { validate } = schema['~standard']
  return (value) => {
    const result = validate(value)
    if (!(result instanceof Promise)) return result
    result.catch(() => undefined) // no longer needed, and must not become an unhandled rejection
    throw asyncSchema()
  }
}

function asyncSchema(cause?: unknown): ScrapeError {
  return new ScrapeError('E_DEFINITION', 'the item schema checks asynchronously, which a scraper’s schema may not', {
    cause,
    fix: 'Make the schema’s refinements and transforms synchronous; do what has to wait in the handler, before emit().',
  })
}

/** `price: expected number, received string` */
function problemOf(issue: Issue): string {
  let path = ''
  for (const part of issue.path ?? []) {
    const key = typeof part === 'object' ? part.key : part
    if (typeof key === 'number') path += `[${key}]`
    else path += path === '' ? String(key) : `.${String(key)}`
  }
  const message = issue.message.replace(/^Invalid (?:input|option|string|key|value): /, '')
  return `${path === '' ? 'item' : path}: ${message}`
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

/**
 * The row of a checked item. `fields` is the order of the JSON's keys; further keys follow in their own order. An item without
 * its own key (`keyOf` returns undefined) is identified by its content. Dates become ISO strings.
 */
export function toItemRow(
  value: object,
  fields: readonly string[],
  keyOf: (item: object) => string | undefined,
): ItemRow {
  const key = keyOf(value)
  let json: string | undefined
  try {
    json = JSON.stringify(isInOrder(value, fields) ? value : inOrder(value, fields))
  } catch (error) {
    // A bigint or a circular reference: the schema accepted something that cannot be written as JSON.
    const why = error instanceof Error ? error.message.split('\n', 1)[0] : String(error)
    throw new ScrapeError('E_ITEM_INVALID', `the item cannot be written as JSON: ${why}`, { cause: error })
  }
  if (json?.charCodeAt(0) !== 0x7b /* { */) {
    throw new ScrapeError('E_ITEM_INVALID', `the item is not a JSON object: ${String(json).slice(0, 80)}`)
  }
  const content = contentKey(json)
  return { key: key === undefined ? content : ownString(key), json, content }
}

function isInOrder(value: object, fields: readonly string[]): boolean {
  let next = 0
  let isPast = false
  for (const key in value) {
    if (fields[next] === key && !isPast) {
      next++
      continue
    }
    const at = fields.indexOf(key)
    if (at === -1) isPast = true
    else if (isPast || at < next) return false
    else next = at + 1
  }
  return true
}

function inOrder(value: object, fields: readonly string[]): object {
  const from = value as Record<string, unknown>
  const to: Record<string, unknown> = {}
  for (const field of fields) if (Object.hasOwn(from, field)) to[field] = from[field]
  for (const key of Object.keys(from)) if (!Object.hasOwn(to, key)) to[key] = from[key]
  return to
}

/**
 * A copy that shares nothing. V8 represents a slice of a long string (13 characters or more) as a window into it, so one key cut
 * from a page would keep the whole page in memory for as long as an engine remembers the key: 100,000 keys, 5 GB.
 */
function ownString(text: string): string {
  return text.length < 13 ? text : (JSON.parse(JSON.stringify(text)) as string)
}
