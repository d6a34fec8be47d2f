/** docs/reference/options.md: every option with its default and bounds, from the schemas that check them. */
import * as z from 'zod'
import { envName, flagName, optionSpecs } from '../src/config/option-table.ts'
import { limitsSchema } from '../src/core/options.ts'
import { formatCount, formatMs } from '../src/observe/format.ts'
import { type JsonSchema, markdownTable, NOTE, page, sentence, sizeText } from './reference-text.ts'

export function optionsPage(): string {
  const rows = optionRows(limitsSchema, '')
  const runRows = optionSpecs.map(([name, spec]) => [
    `\`${name}\``,
    `\`${flagName(name)}${spec.value === undefined ? '' : ` ${spec.value}`}\``,
    `\`${envName(name)}\``,
    `${sentence(spec.describe)}${spec.limit === undefined ? '' : ` Sets \`limits.${spec.limit}\`.`}`,
  ])
  return page([
    '# Options',
    NOTE,
    'What a scraper may set under `limits`. Durations are `"500ms"`, `"30s"`, `"2m"`, `"1h"`, `"1d"` or milliseconds; sizes are `"64KB"`, `"16MiB"` or bytes. Unknown names and values out of bounds stop the program, with all problems in one message.',
    markdownTable(['option', 'default', 'values', 'what it does'], rows),
    '## Options of a run',
    'Each is a flag of `sluice run`, a variable of the environment or of `.env`, and a name in `sluice.config.ts`; the later wins over the earlier: defaults, `sluice.config.ts`, `.env`, environment, flags. `sluice config --explain` shows every value and where it came from. An editor checks a config file that ends in `satisfies Options`, a type that `sluice` exports.',
    markdownTable(['option', 'flag', 'environment', 'what it does'], runRows),
  ])
}

function optionRows(schema: z.ZodObject, prefix: string): string[][] {
  const json = z.toJSONSchema(schema, { io: 'input' }) as JsonSchema
  return Object.entries(json.properties ?? {}).flatMap(([name, property]) => {
    const field = schema.shape[name] as z.ZodType
    const inner = innermost(field)
    if (inner instanceof z.ZodObject) return optionRows(inner, `${prefix}${name}.`)
    const values = valuesOf(field, property)
    return [[`\`${prefix}${name}\``, defaultOf(field, values), values, sentence(property.description ?? '')]]
  })
}

function innermost(schema: z.ZodType): z.ZodType {
  const { innerType } = schema.def as { innerType?: z.ZodType }
  return innerType === undefined ? schema : innermost(innerType)
}

/** JSON Schema knows no durations and sizes, but the option's own complaint about nonsense names its bounds. */
function valuesOf(field: z.ZodType, property: JsonSchema): string {
  if (property.enum !== undefined) return property.enum.map((value) => `\`${JSON.stringify(value)}\``).join(', ')
  const complaint = field.safeParse('?').error?.issues[0]?.message ?? ''
  const duration = /duration .* from (\d+) ms to (\d+) ms/.exec(complaint)
  if (duration !== null) return `duration, ${formatMs(Number(duration[1]))} to ${longMs(Number(duration[2]))}`
  const size = /size .* from (\d+) to (\d+) bytes/.exec(complaint)
  if (size !== null) return `size, ${sizeText(Number(size[1]))} to ${sizeText(Number(size[2]))}`
  if (property.type === 'integer' || property.type === 'number') {
    const noun = property.type === 'integer' ? 'whole number' : 'number'
    return `${noun}, ${formatCount(property.minimum ?? 0)} to ${formatCount(property.maximum ?? Number.POSITIVE_INFINITY)}`
  }
  return (property.anyOf ?? []).map(alternativeOf).join(', ') || String(property.type)
}

function alternativeOf(schema: JsonSchema): string {
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``
  if (schema.type === 'array') return 'a list of names'
  if (schema.type === 'string') return 'a percentage such as `"5%"`'
  if (schema.type === 'integer') return `a whole number from ${schema.minimum} to ${schema.maximum}`
  return 'a number from 0 to 1'
}

function defaultOf(field: z.ZodType, values: string): string {
  const { success, data } = field.safeParse(undefined)
  if (!success || data === undefined) return '–'
  if (values.startsWith('duration')) return data === 0 ? '`0`' : longMs(Number(data))
  if (values.startsWith('size')) return sizeText(Number(data))
  if (typeof data === 'number' && values.includes('percentage')) return `\`"${Math.round(data * 1e4) / 100}%"\``
  return `\`${JSON.stringify(data)}\``
}

/** Whole units where they are: `1 h`, `30 d`. */
function longMs(ms: number): string {
  for (const [unit, size] of [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1000],
  ] as const) {
    if (ms >= size && ms % size === 0) return `${ms / size} ${unit}`
  }
  return `${ms} ms`
}
