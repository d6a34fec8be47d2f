/** docs/reference/rest.md: every endpoint of the API, from the OpenAPI document that the server serves. */

import * as z from 'zod'
import { openApiDocument } from '../src/server/api/openapi.ts'
import { problemSchema } from '../src/server/api/problem.ts'
import { ENDPOINTS } from '../src/server/api/routes/endpoints.ts'
import { fieldRows, type JsonSchema, markdownTable, NOTE, page, sentence, typeText } from './reference-text.ts'

type Definitions = NonNullable<JsonSchema['$defs']>
type Content = Record<string, { schema?: JsonSchema }>

interface Operation {
  operationId: string
  summary: string
  tags: [string]
  'x-role'?: string
  parameters: { name: string; in: string; required: boolean; description?: string; schema: JsonSchema }[]
  requestBody?: { content: Content }
  responses: Record<string, { content?: Content }>
}

export function restPage(): string {
  const { paths, components } = openApiDocument(ENDPOINTS, '') as {
    paths: Record<string, Record<string, Operation>>
    components: { schemas: Definitions }
  }
  const { schemas } = components
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ call: `${method.toUpperCase()} ${path}`, operation })),
  )
  const areas = [...new Set(all.map(({ operation }) => operation.tags[0]))]
  return page([
    '# REST API',
    NOTE,
    'Served by `sluice serve`; `/openapi.json` says the same to programs, `/docs` to people. Send `Authorization: Bearer KEY`; the key needs the role that is named, or a higher one: `read`, `operate`, `admin`. Until the first key is made, requests made on the server’s own machine need none. How to use it: [serve an API](../how-to/serve-an-api.md).',
    '## Errors',
    'A problem is `application/problem+json` (RFC 9457). `code` is one of the [errors](errors.md).',
    markdownTable(
      ['field', 'type', 'default', 'what it says'],
      fieldRows(z.toJSONSchema(problemSchema) as JsonSchema, ''),
    ),
    ...areas.flatMap((area) => [
      `## ${sentence(area).slice(0, -1)}`,
      ...all
        .filter(({ operation }) => operation.tags[0] === area)
        .flatMap(({ call, operation }) => section(call, operation, schemas)),
    ]),
  ])
}

function section(call: string, operation: Operation, schemas: Definitions): string[] {
  const role = operation['x-role']
  const parameters = operation.parameters.map(({ name, in: place, required, description, schema }) => [
    `\`${name}\``,
    place,
    typeText(schema, schemas),
    required ? 'required' : schema.default === undefined ? '–' : `\`${JSON.stringify(schema.default)}\``,
    sentence(description ?? schema.description ?? ''),
  ])
  const body = operation.requestBody?.content['application/json']?.schema
  const [status, answer] = Object.entries(operation.responses).find(([code]) => code !== 'default')!
  return [
    `### ${call}`,
    `${sentence(operation.summary)} Client: \`${operation.operationId}\`. ${role === undefined ? 'Anybody may ask.' : `Role \`${role}\`.`}`,
    ...(parameters.length === 0
      ? []
      : [markdownTable(['parameter', 'in', 'type', 'default', 'what it says'], parameters)]),
    ...(body === undefined ? [] : ['Body:', ...shapeOf(body, schemas)]),
    ...answerOf(status, answer.content, schemas),
  ]
}

function answerOf(status: string, content: Content = {}, schemas: Definitions): string[] {
  const schema = content['application/json']?.schema
  if (schema !== undefined) return [`Answer ${status}:`, ...shapeOf(schema, schemas)]
  const types = Object.keys(content).map((type) => `\`${type}\``)
  return [`Answer ${status}: ${types.join(', ') || 'no body'}.`]
}

function shapeOf(schema: JsonSchema, schemas: Definitions): string[] {
  const rows = schema.type === 'array' ? fieldRows(schema.items!, '[].', schemas) : fieldRows(schema, '', schemas)
  return rows.length === 0
    ? [`${typeText(schema, schemas)}.`]
    : [markdownTable(['field', 'type', 'default', 'what it says'], rows)]
}
