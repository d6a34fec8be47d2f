/** Default and bounds of an option in words, read from its schema: for the help, `sluice config` and the reference. */
import * as z from 'zod'
import { limitsSchema } from '../core/options.ts'
import { type OptionName, specOf } from './option-table.ts'

interface OptionBounds {
  /** `whole number, 1 to 4,096`, `duration, 10 ms to 1 h`, `respect or ignore`, `text` … */
  accepts: string
  default: string
}

export function optionBounds(name: OptionName): OptionBounds {
  const { fallback, value } = specOf(name)
  const schema = optionSchema(name)
  const bounds = boundsOf(schema)
  return { accepts: value === 'JSON' ? 'JSON' : bounds.accepts, default: fallback ?? bounds.default }
}

/** The schema that validates an option: its own, or that of the limit it sets. */
export function optionSchema(name: OptionName): z.ZodType {
  const { limit, schema } = specOf(name)
  if (limit === undefined) return schema
  let inner: z.ZodType = limitsSchema
  for (const part of limit.split('.')) inner = (innermost(inner) as z.ZodObject).shape[part] as z.ZodType
  return inner
}

export function boundsOf(schema: z.ZodType): OptionBounds {
  const accepts = acceptsOf(schema)
  return { accepts, default: defaultText(schema.safeParse(undefined).data, accepts) }
}

export function innermost(schema: z.ZodType): z.ZodType {
  const { innerType } = schema.def as { innerType?: z.ZodType }
  return innerType === undefined ? schema : innermost(innerType)
}

interface JsonSchema {
  type?: string
  enum?: unknown[]
  anyOf?: JsonSchema[]
}

/** JSON Schema has no durations and sizes, but the message for a bad value names the bounds. */
function acceptsOf(schema: z.ZodType): string {
  const message = schema.safeParse('?').error?.issues[0]?.message ?? ''
  const [, kind, from, to] = /(duration|size|whole number|number)\b.* from (\d+)(?: ms)? to (\d+)/.exec(message) ?? []
  if (/^must be "off"/.test(message)) return `off, or a whole number from ${count(from!)} to ${count(to!)}`
  if (/percentage/.test(message)) return 'percentage or share, 0% to 100%'
  if (kind === 'duration') return `duration, ${durationText(Number(from))} to ${durationText(Number(to))}`
  if (kind === 'size') return `size, ${sizeText(Number(from))} to ${sizeText(Number(to))}`
  if (kind !== undefined) return `${kind}, ${count(from!)} to ${count(to!)}`
  if (/^must be/.test(message)) return message.replace(/^must be (?:an? )?/, '')
  const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonSchema
  if (json.enum !== undefined) return json.enum.join(', ').replace(/, (?=[^,]*$)/, ' or ')
  if (schema.safeParse('yes').data === true) return 'yes or no'
  const literals = (json.anyOf ?? []).flatMap((one) => ('const' in one ? [String(one.const)] : []))
  if (literals.length > 0) return `${literals.join(', ')}, or a list`
  return json.anyOf?.some((one) => one.type === 'array') ? 'list, comma separated' : 'text'
}

function defaultText(value: unknown, accepts: string): string {
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return 'none'
  if (value === false) return 'no'
  if (typeof value === 'object') return Object.keys(value!).length === 0 ? 'none' : JSON.stringify(value)
  if (typeof value !== 'number') return String(value)
  if (accepts.startsWith('duration')) return value === 0 ? '0' : durationText(value)
  if (accepts.startsWith('size')) return sizeText(value)
  return accepts.startsWith('percentage') ? `${Math.round(value * 1e4) / 100}%` : count(value)
}

const count = (number: number | string) => Number(number).toLocaleString('en-US')

/** Whole units: `1 h`, `30 d`. */
function durationText(ms: number): string {
  const units = [['d', 86_400_000], ['h', 3_600_000], ['min', 60_000], ['s', 1000]] as const // biome-ignore format: a table
  const [unit, size] = units.find(([, one]) => ms >= one && ms % one === 0) ?? ['ms', 1]
  return `${ms / size} ${unit}`
}

function sizeText(bytes: number): string {
  const power = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const
  let at = 0
  for (; at < power.length - 1 && bytes >= 1024 && bytes % 1024 === 0; at += 1) bytes /= 1024
  return `${count(bytes)} ${power[at]}`
}
