/** One API endpoint: its path, who may call it, input and output. The server, the OpenAPI document and the client read it. */
import type * as z from 'zod'
import type { Role } from '../../../core/role.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

type Fields = z.ZodObject

export interface Endpoint {
  readonly method: Method
  /** `/v1/runs/:id` */
  readonly path: string
  readonly area: string
  readonly summary: string
  /** Omitted: no key is needed. */
  readonly role?: Role
  readonly params?: Fields
  readonly query?: Fields
  readonly body?: z.ZodType
  /** Of a successful response. Default 200. */
  readonly status?: number
  /** The response: JSON of this shape, nothing (204), or another kind of text, streamed. */
  readonly answer: z.ZodType | undefined | Streamed
  /** A repeat with the same `Idempotency-Key` gets the first answer. */
  readonly isIdempotentByKey?: boolean
}

export interface Streamed {
  readonly contentTypes: readonly string[]
}

export const streamed = (...contentTypes: string[]): Streamed => ({ contentTypes })

export const isStreamed = (answer: Endpoint['answer']): answer is Streamed =>
  answer !== undefined && 'contentTypes' in answer

/** Keeps the types of each part, so that handlers and the client are checked against them. */
export const endpoint = <const E extends Endpoint>(spec: E): E => spec

type Parsed<T> = T extends z.ZodType ? z.output<T> : undefined
type Given<T> = T extends z.ZodType ? z.input<T> : undefined

export interface Asked<E extends Endpoint> {
  readonly params: Parsed<E['params']>
  readonly query: Parsed<E['query']>
  readonly body: Parsed<E['body']>
}

/** What a client passes; parts the endpoint does not have are omitted. */
export type Asking<E extends Endpoint> = Omit<
  { params: Given<E['params']>; query?: Given<E['query']>; body: Given<E['body']> },
  | (E['params'] extends z.ZodType ? never : 'params')
  | (E['query'] extends z.ZodType ? never : 'query')
  | (E['body'] extends z.ZodType ? never : 'body')
>

export type Answered<E extends Endpoint> = E['answer'] extends z.ZodType ? z.output<E['answer']> : undefined
