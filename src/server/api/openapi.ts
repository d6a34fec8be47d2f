/** The OpenAPI 3.1 document, generated from the same schemas the server validates with. */
import * as z from 'zod'
import { problemSchema } from './problem.ts'
import { type Endpoint, isStreamed } from './routes/endpoint.ts'

type Json = Record<string, unknown>

export function openApiDocument(endpoints: Readonly<Record<string, Endpoint>>, version: string): Json {
  const schemas = new Schemas()
  const problem = schemas.of(problemSchema.meta({ id: 'Problem' }), 'output')
  const paths: Record<string, Json> = {}
  for (const [name, one] of Object.entries(endpoints)) {
    const path = one.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [one.method.toLowerCase()]: operationOf(name, one, schemas, problem) }
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
      schemas: schemas.named,
      securitySchemes: {
        key: {
          type: 'http',
          scheme: 'bearer',
          description: 'An API key. Required for every request once the first key exists.',
        },
      },
    },
  }
}

function operationOf(operationId: string, one: Endpoint, schemas: Schemas, problem: Json): Json {
  const { body } = one
  return {
    operationId,
    summary: one.summary,
    tags: [one.area],
    ...(one.role === undefined ? {} : { security: [{ key: [] }, {}], 'x-role': one.role }),
    parameters: [
      ...parametersOf(one.params, 'path', schemas),
      ...parametersOf(one.query, 'query', schemas),
      ...(one.isIdempotentByKey ? [IDEMPOTENCY_KEY] : []),
    ],
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: { 'application/json': { schema: schemas.of(body, 'input') } } } }),
    responses: {
      [one.status ?? 200]: { description: 'as asked', ...contentOf(one, schemas) },
      ...(isEventStream(one) ? { 204: { description: 'the caller has received the last event' } } : {}),
      default: { description: 'a problem', content: { 'application/problem+json': { schema: problem } } },
    },
  }
}

const isEventStream = ({ answer }: Endpoint) => isStreamed(answer) && answer.contentTypes.includes('text/event-stream')

const IDEMPOTENCY_KEY = {
  name: 'idempotency-key',
  in: 'header',
  required: false,
  description: 'a repeat with the same key gets the first answer again',
  schema: { type: 'string', minLength: 1, maxLength: 200 },
}

function contentOf({ answer }: Endpoint, schemas: Schemas): Json {
  if (answer === undefined) return {}
  if (!isStreamed(answer)) return { content: { 'application/json': { schema: schemas.of(answer, 'output') } } }
  return { content: Object.fromEntries(answer.contentTypes.map((type) => [type, {}])) }
}

function parametersOf(fields: z.ZodObject | undefined, place: 'path' | 'query', schemas: Schemas): Json[] {
  if (fields === undefined) return []
  const { properties = {}, required = [] } = schemas.of(fields, 'input') as {
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

/** Named schemas appear once in `components` and are referenced; the others are inlined where they are used. */
class Schemas {
  readonly named: Record<string, Json> = {}
  /** The definition behind each name, as JSON text. */
  readonly #definitions = new Map<string, string>()

  of(schema: z.ZodType, io: 'input' | 'output'): Json {
    const made = z.toJSONSchema(schema, { io, unrepresentable: 'any', reused: 'inline' }) as Json
    const { $schema: _, id: __, $defs = {}, ...rest } = made as Json & { $defs?: Record<string, Json> }
    const names = new Map(Object.entries($defs).map(([name, one]) => [name, this.#nameFor(name, JSON.stringify(one))]))
    const placed = (one: Json): Json =>
      JSON.parse(JSON.stringify(one), (key, value) =>
        key === '$ref' ? `#/components/schemas/${names.get(value.replace('#/$defs/', ''))}` : value,
      )
    for (const [name, { id: _id, ...one }] of Object.entries($defs)) this.named[names.get(name)!] ??= placed(one)
    return placed(rest)
  }

  /** Input and output may differ under the same name. The only schema without a name of its own is the one for any JSON. */
  #nameFor(given: string, definition: string): string {
    const name = given.startsWith('__schema') ? 'AnyJson' : given
    for (let i = 1; ; i++) {
      const one = i === 1 ? name : `${name}${i}`
      const known = this.#definitions.get(one)
      if (known === undefined) this.#definitions.set(one, definition)
      if (known === undefined || known === definition) return one
    }
  }
}
