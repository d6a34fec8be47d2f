/** The OpenAPI 3.1 document, made from the same schemas the server checks with. */
import * as z from 'zod'
import { type Endpoint, isStreamed } from './endpoint.ts'
import { problemSchema } from './problem.ts'

type Json = Record<string, unknown>

export function openApiDocument(endpoints: Readonly<Record<string, Endpoint>>, version: string): Json {
  const paths: Record<string, Json> = {}
  for (const [name, one] of Object.entries(endpoints)) {
    const path = one.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [one.method.toLowerCase()]: operationOf(name, one) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sluice',
      version,
      description: 'Runs, their items, their failures and the fleet that works on them.',
    },
    paths,
    components: {
      schemas: { Problem: schemaOf(problemSchema, 'output') },
      securitySchemes: { key: { type: 'http', scheme: 'bearer', description: 'An API key. Not needed on loopback.' } },
    },
  }
}

function operationOf(operationId: string, one: Endpoint): Json {
  return {
    operationId,
    summary: one.summary,
    tags: [one.area],
    ...(one.role === undefined ? {} : { security: [{ key: [] }, {}], 'x-role': one.role }),
    parameters: [
      ...parametersOf(one.params, 'path'),
      ...parametersOf(one.query, 'query'),
      ...(one.isIdempotentByKey ? [IDEMPOTENCY_KEY] : []),
    ],
    ...(one.body === undefined
      ? {}
      : { requestBody: { required: true, content: { 'application/json': { schema: schemaOf(one.body, 'input') } } } }),
    responses: {
      [one.status ?? 200]: { description: 'as asked', ...contentOf(one) },
      default: { description: 'a problem', content: { 'application/problem+json': { schema: PROBLEM } } },
    },
  }
}

const PROBLEM = { $ref: '#/components/schemas/Problem' }

const IDEMPOTENCY_KEY = {
  name: 'idempotency-key',
  in: 'header',
  required: false,
  description: 'a repeat with the same key gets the first answer again',
  schema: { type: 'string', minLength: 1, maxLength: 200 },
}

function contentOf({ answer }: Endpoint): Json {
  if (answer === undefined) return {}
  if (!isStreamed(answer)) return { content: { 'application/json': { schema: schemaOf(answer, 'output') } } }
  return { content: Object.fromEntries(answer.contentTypes.map((type) => [type, {}])) }
}

function parametersOf(fields: z.ZodObject | undefined, place: 'path' | 'query'): Json[] {
  if (fields === undefined) return []
  const { properties = {}, required = [] } = schemaOf(fields, 'input') as {
    properties?: Record<string, Json>
    required?: string[]
  }
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    schema,
  }))
}

/** Written out in full: a schema that is used twice stands there twice, and nothing has to be looked up. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Json {
  const {
    $schema: _,
    id: __,
    ...rest
  } = z.toJSONSchema(schema, { io, unrepresentable: 'any', reused: 'inline' }) as Json
  return rest
}
