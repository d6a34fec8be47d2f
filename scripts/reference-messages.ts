/** docs/reference/messages.md and the JSON Schemas beside it: the messages of the task protocol. */
import * as z from 'zod'
import { formatCount } from '../src/observe/format.ts'
import { MESSAGE_BYTES_MAX, MESSAGE_VERSION, MESSAGES } from '../src/protocol/messages.ts'
import { PART_BYTES } from '../src/protocol/parts.ts'
import { COLLECTORS_GROUP, streamNames, WORKERS_GROUP } from '../src/protocol/streams.ts'
import { fieldRows, type JsonSchema, markdownTable, NOTE, page, sizeText } from './reference-text.ts'

/** From the writer's point of view: fields with a default may be omitted. */
function messageSchema(name: keyof typeof MESSAGES): JsonSchema {
  return { title: `sluice ${name} message`, ...(z.toJSONSchema(MESSAGES[name], { io: 'input' }) as JsonSchema) }
}

export function messageSchemas(): Record<string, string> {
  const names = Object.keys(MESSAGES) as (keyof typeof MESSAGES)[]
  return Object.fromEntries(
    names.map((name) => [`messages/${name}.schema.json`, `${JSON.stringify(messageSchema(name), null, 2)}\n`]),
  )
}

const MESSAGE_WORDS: Record<keyof typeof MESSAGES, string> = {
  task: 'Client → one worker of its type.',
  result: 'Worker → collector. All parts of one result are added at once, in their order.',
  error: 'Worker or collector → any observer: failed tries, and messages that were refused.',
  health: 'Worker → any observer, every 10 seconds and after each command.',
  command: 'Operator → all workers.',
}

export function messagesPage(): string {
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
        [`\`${names.errors}\``, 'errors', 'any observer'],
        [`\`${names.health}\``, 'health', 'any observer'],
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
