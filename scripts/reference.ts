/** Writes docs/reference/*.md from the code. With `--check` it writes nothing and fails when a page is out of date. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import * as z from 'zod'
import { envName, flagName, optionSpecs } from '../src/app/config.ts'
import { VERDICTS } from '../src/cli/explain.ts'
import { EXIT_CODES } from '../src/cli/print-error.ts'
import { ERRORS, type ErrorKind } from '../src/core/error-table.ts'
import { limitsSchema } from '../src/core/options.ts'
import { formatCount, formatMs } from '../src/observe/format.ts'
import { METRICS, type MetricSpec } from '../src/observe/metrics-table.ts'
import { MESSAGE_BYTES_MAX, MESSAGE_VERSION, MESSAGES } from '../src/protocol/messages.ts'
import { PART_BYTES } from '../src/protocol/parts.ts'
import { COLLECTORS_GROUP, streamNames, WORKERS_GROUP } from '../src/protocol/streams.ts'

const NOTE = '<!-- Made by scripts/reference.ts from the code. Change the code, then run it again. -->'

/** Path under docs/reference → content. */
export function referencePages(): Record<string, string> {
  return {
    'errors.md': errorsPage(),
    'options.md': optionsPage(),
    'metrics.md': metricsPage(),
    'messages.md': messagesPage(),
    ...messageSchemas(),
  }
}

function errorsPage(): string {
  const kinds = Object.entries(ERRORS as Record<string, ErrorKind>)
  return page([
    '# Errors',
    NOTE,
    'A code says what happened, its verdict what is done about it, its class groups it in metrics and dead letters. `sluice explain CODE` shows the same in a terminal.',
    '## Verdicts',
    markdownTable(
      ['verdict', 'what it means'],
      Object.entries(VERDICTS).map(([name, text]) => [`\`${name}\``, text]),
    ),
    '## Exit codes',
    markdownTable(
      ['code', 'meaning'],
      Object.entries(EXIT_CODES).map(([code, text]) => [`\`${code}\``, text]),
    ),
    '## Codes',
    markdownTable(
      ['code', 'class', 'verdict', 'what'],
      kinds.map(([code, kind]) => [`[\`${code}\`](#${code.toLowerCase()})`, kind.class, kind.verdict, kind.what]),
    ),
    ...kinds.map(([code, kind]) => {
      const tries = kind.triesMax === undefined ? '' : `, at most ${kind.triesMax} tries`
      return `### ${code}\n\n${sentence(kind.what)} (class \`${kind.class}\`, verdict \`${kind.verdict}\`${tries})\n\n- **Why:** ${kind.why}\n- **Fix:** ${kind.fix}`
    }),
  ])
}

interface JsonSchema {
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
  properties?: Record<string, JsonSchema>
}

function optionsPage(): string {
  const rows = optionRows(limitsSchema, '')
  const runRows = optionSpecs.map(([name, spec]) => [
    `\`${name}\``,
    `\`${flagName(name)}${spec.value === undefined ? '' : ` ${spec.value.replaceAll('|', '\\|')}`}\``,
    `\`${envName(name)}\``,
    `${sentence(spec.describe)}${spec.limit === undefined ? '' : ` Sets \`limits.${spec.limit}\`.`}`,
  ])
  return page([
    '# Options',
    NOTE,
    'What a scraper may set under `limits`. Durations are `"500ms"`, `"30s"`, `"2m"`, `"1h"`, `"1d"` or milliseconds; sizes are `"64KB"`, `"16MiB"` or bytes. Unknown names and values out of bounds stop the program, with all problems in one message.',
    markdownTable(['option', 'default', 'values', 'what it does'], rows),
    '## Options of a run',
    'Each is a flag of `sluice run`, a variable of the environment or of `.env`, and a name in `sluice.config.ts`; the later wins over the earlier: defaults, `sluice.config.ts`, `.env`, environment, flags. `sluice config --explain` shows every value and where it came from.',
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

/** Limits of memory are powers of two: `16 MiB`. */
function sizeText(bytes: number): string {
  for (const [unit, size] of [
    ['GiB', 1024 ** 3],
    ['MiB', 1024 ** 2],
    ['KiB', 1024],
  ] as const) {
    if (bytes >= size && bytes % size === 0) return `${bytes / size} ${unit}`
  }
  return `${bytes} B`
}

function metricsPage(): string {
  const rows = (prefix: string) =>
    Object.entries(METRICS as Record<string, MetricSpec>)
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, spec]) => [
        `\`${name}\``,
        spec.type,
        spec.labels.map((label) => `\`${label}\``).join(', ') || '–',
        spec.help,
      ])
  const head = ['metric', 'type', 'labels', 'what it counts']
  return page([
    '# Metrics',
    NOTE,
    '`sluice run NAME --metrics :9090` serves them at `http://127.0.0.1:9090/metrics`. Base units; no URL or run id is ever a label. The metrics of the process and of Node (`process_*`, `nodejs_*`) are there too.',
    markdownTable(head, rows('sluice_')),
    '## Names of the Go books scraper',
    'The same numbers under the names its dashboards know.',
    markdownTable(head, rows('scraper_')),
  ])
}

/** As a writer of messages needs it: what has a default may be left out. */
function messageSchema(name: keyof typeof MESSAGES): JsonSchema {
  return { title: `sluice ${name} message`, ...(z.toJSONSchema(MESSAGES[name], { io: 'input' }) as JsonSchema) }
}

function messageSchemas(): Record<string, string> {
  const names = Object.keys(MESSAGES) as (keyof typeof MESSAGES)[]
  return Object.fromEntries(
    names.map((name) => [`messages/${name}.schema.json`, `${JSON.stringify(messageSchema(name), null, 2)}\n`]),
  )
}

const MESSAGE_WORDS: Record<keyof typeof MESSAGES, string> = {
  task: 'Whoever wants something done → one worker of its type.',
  result: 'Worker → collector. All parts of one result are added at once, in their order.',
  error: 'Worker or collector → whoever looks: failed tries, and messages that were refused.',
  health: 'Worker → whoever looks, every 10 seconds and after each command.',
  command: 'Whoever runs the workers → all of them.',
}

function messagesPage(): string {
  const names = streamNames()
  const [priority, ordinary] = names.tasks('TYPE')
  return page([
    '# Messages of the task protocol',
    NOTE,
    'Tasks, results, errors, health and commands travel on Redis streams. An entry has one field, `message`, which holds JSON. The JSON Schema of each message is beside this page. How to use it: [write a worker in another language](../how-to/write-a-worker-in-another-language.md).',
    '## Streams',
    markdownTable(
      ['stream', 'carries', 'read by'],
      [
        [`\`${ordinary}\``, 'tasks; `TYPE` is the name of the scraper', `group \`${WORKERS_GROUP}\``],
        [`\`${priority}\``, 'tasks with a priority above 0, read first', `group \`${WORKERS_GROUP}\``],
        [
          `\`${names.delayed('TYPE')}\``,
          'a sorted set: tasks to be tried again, by time (epoch ms)',
          'every worker, once a second',
        ],
        [`\`${names.results}\``, 'results', `group \`${COLLECTORS_GROUP}\``],
        [`\`${names.errors}\``, 'errors', 'whoever looks'],
        [`\`${names.health}\``, 'health', 'whoever looks'],
        [`\`${names.commands}\``, 'commands', 'every worker'],
      ],
    ),
    `A message says its \`version\`; one that says none is of version ${MESSAGE_VERSION}. Another version, JSON that is none, and messages over ${sizeText(MESSAGE_BYTES_MAX.task)} (tasks) or ${sizeText(MESSAGE_BYTES_MAX.result)} (results) are refused: copied to \`${names.errors}\` with the reason, and acknowledged. A result over ${formatCount(PART_BYTES)} bytes comes in parts.`,
    ...(Object.keys(MESSAGES) as (keyof typeof MESSAGES)[]).flatMap((name) => [
      `## ${name}`,
      `${MESSAGE_WORDS[name]} [Schema](messages/${name}.schema.json).`,
      markdownTable(['field', 'type', 'default', 'what it says'], fieldRows(messageSchema(name), '')),
    ]),
  ])
}

function fieldRows(schema: JsonSchema, prefix: string): string[][] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const isRequired = schema.required?.includes(name) === true
    const standard = property.default === undefined ? '–' : `\`${JSON.stringify(property.default)}\``
    const row = [
      `\`${prefix}${name}\``,
      typeText(property),
      isRequired ? 'required' : standard,
      sentence(property.description ?? ''),
    ]
    const inner = property.type === 'array' ? property.items : property
    return [row, ...fieldRows(inner ?? {}, `${prefix}${name}${property.type === 'array' ? '[]' : ''}.`)]
  })
}

function typeText(schema: JsonSchema): string {
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${value}\``).join(', ')
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(typeText))].join(' or ')
  const inner = schema.prefixItems?.[0] ?? schema.items
  if (schema.type === 'array' && inner !== undefined) return `list of ${typeText(inner)}`
  return [schema.type ?? 'anything'].flat().join(' or ')
}

const page = (blocks: string[]) => `${blocks.join('\n\n')}\n`
const sentence = (text: string) =>
  text === '' ? '' : `${text[0]!.toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`

function markdownTable(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n')
}

/** Names of the pages whose file differs from what the code says. */
export async function outdatedPages(folder: string): Promise<string[]> {
  const outdated: string[] = []
  for (const [name, content] of Object.entries(referencePages())) {
    const found = await readFile(join(folder, name), 'utf8').catch(() => undefined)
    if (found !== content) outdated.push(name)
  }
  return outdated
}

export async function writePages(folder: string): Promise<void> {
  for (const [name, content] of Object.entries(referencePages())) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), content)
  }
}

if (import.meta.main) {
  const folder = join(import.meta.dirname, '..', 'docs', 'reference')
  if (process.argv.includes('--check')) {
    const outdated = await outdatedPages(folder)
    if (outdated.length > 0) {
      console.error(`out of date: ${outdated.map((name) => `docs/reference/${name}`).join(', ')}`)
      console.error('  fix: node scripts/reference.ts')
      process.exitCode = 1
    }
  } else await writePages(folder)
}
