/** Text and tables of the generated reference pages. */

export const NOTE = '<!-- Made by scripts/reference.ts from the code. Change the code, then run it again. -->'

export const page = (blocks: string[]) => `${blocks.join('\n\n')}\n`

export const sentence = (text: string) =>
  text === '' ? '' : `${text[0]!.toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`

export function markdownTable(head: string[], rows: string[][]): string {
  const line = (cells: string[]) =>
    `| ${cells.map((cell) => cell.replaceAll(/\\?\|/g, '\\|').replaceAll('\n', ' ')).join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n')
}

export interface JsonSchema {
  title?: string
  default?: unknown
  required?: string[]
  items?: JsonSchema
  prefixItems?: JsonSchema[]
  type?: string | string[]
  description?: string
  minimum?: number
  maximum?: number
  enum?: unknown[]
  const?: unknown
  anyOf?: JsonSchema[]
  additionalProperties?: JsonSchema | boolean
  $ref?: string
  $defs?: Record<string, JsonSchema>
  properties?: Record<string, JsonSchema>
}

/** Memory limits are powers of two: `16 MiB`. */
export function sizeText(bytes: number): string {
  for (const [unit, size] of [
    ['GiB', 1024 ** 3],
    ['MiB', 1024 ** 2],
    ['KiB', 1024],
  ] as const) {
    if (bytes >= size && bytes % size === 0) return `${bytes / size} ${unit}`
  }
  return `${bytes} B`
}

/** Resolves a reference. Only the schema of arbitrary JSON refers to itself. */
function resolved(schema: JsonSchema, defs: JsonSchema['$defs']): JsonSchema {
  const name = schema.$ref?.replace(/^#\/(?:\$defs|components\/schemas)\//, '')
  const found = name === undefined ? undefined : defs?.[name]
  return found === undefined || isAnyJson(name!) ? schema : { ...found, ...schema, $ref: undefined! }
}

const isAnyJson = (name: string) => /__schema|AnyJson/.test(name)

/** One row per field, with nested fields by their path. */
export function fieldRows(given: JsonSchema, prefix: string, defs = given.$defs): string[][] {
  const schema = resolved(given, defs)
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const isRequired = schema.required?.includes(name) === true
    const standard = property.default === undefined ? '–' : `\`${JSON.stringify(property.default)}\``
    const row = [
      `\`${prefix}${name}\``,
      typeText(property, defs),
      isRequired ? 'required' : standard,
      sentence(property.description ?? ''),
    ]
    return [
      row,
      ...innerOf(property, defs).flatMap(({ at, inner }) => fieldRows(inner, `${prefix}${name}${at}.`, defs)),
    ]
  })
}

/** The objects it contains: itself, one of several variants, the entries of a list, the values of a map. */
function innerOf(given: JsonSchema, defs: JsonSchema['$defs']): { at: string; inner: JsonSchema }[] {
  const schema = resolved(given, defs)
  if (schema.anyOf !== undefined) return schema.anyOf.flatMap((form) => innerOf(form, defs))
  const [at, inner] =
    schema.type === 'array'
      ? ['[]', schema.items]
      : typeof schema.additionalProperties === 'object' && schema.properties === undefined
        ? ['.KEY', schema.additionalProperties]
        : ['', schema]
  return inner === undefined
    ? []
    : at === ''
      ? [{ at, inner }]
      : innerOf(inner, defs).map((one) => ({ ...one, at: at + one.at }))
}

export function typeText(given: JsonSchema, defs = given.$defs): string {
  if (given.$ref !== undefined && isAnyJson(given.$ref)) return 'any JSON'
  const schema = resolved(given, defs)
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${value}\``).join(', ')
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map((form) => typeText(form, defs)))].join(' or ')
  const inner = schema.prefixItems?.[0] ?? schema.items
  if (schema.type === 'array' && inner !== undefined) return `list of ${typeText(inner, defs)}`
  return [schema.type ?? 'anything'].flat().join(' or ')
}
