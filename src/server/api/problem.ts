/** Errors as RFC 9457 problems: what, why and what to do, in one format for every route. */
import * as z from 'zod'
import { type ApiErrorCode, type ErrorCode, EVERY_ERROR } from '../../core/error-table.ts'
import { ScrapeError } from '../../core/errors.ts'

export const problemSchema = z.object({
  type: z.string().describe('names the kind of problem'),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  /** Stable, for use by programs. */
  code: z.string(),
  hint: z.string().optional().describe('what to do about it'),
  errors: z.array(z.object({ at: z.string(), message: z.string() })).optional(),
})

export type ProblemBody = z.infer<typeof problemSchema>

/** An error of the API itself; those of the product are `ScrapeError`s. */
export class Problem extends Error {
  readonly body: ProblemBody
  readonly headers: Readonly<Record<string, string>>

  constructor(
    status: number,
    code: ApiErrorCode | ErrorCode,
    detail: string,
    more: { hint?: string; errors?: ProblemBody['errors']; headers?: Record<string, string> } = {},
  ) {
    super(detail)
    this.headers = more.headers ?? {}
    this.body = {
      type: `urn:sluice:${code}`,
      title: TITLES[status] ?? 'Problem',
      status,
      detail,
      code,
      hint: more.hint ?? EVERY_ERROR[code].fix,
      errors: more.errors,
    }
  }
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad request',
  401: 'A key is needed',
  403: 'Not allowed',
  404: 'Not found',
  405: 'Method not allowed',
  409: 'Conflict',
  413: 'Too large',
  415: 'Unsupported media type',
  422: 'Not usable',
  429: 'Too many requests',
  500: 'A fault of ours',
  503: 'A service is away',
}

/** Lists the fields that break the schema, such as `body.args.pages`. */
export function invalid(where: string, error: z.ZodError): Problem {
  const errors = error.issues.slice(0, 50).map(({ path, message }) => ({ at: [where, ...path].join('.'), message }))
  return new Problem(400, 'E_REQUEST', `the ${where} is not as it should be`, {
    errors,
    hint: 'See /docs for what each route takes.',
  })
}

/** Accepts anything that was thrown. An internal error reveals nothing about its cause. */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (error instanceof ScrapeError) {
    const notes = (error.details.notes ?? []).map((message) => ({ at: 'request', message }))
    return new Problem(statusOf(error), error.code, error.message, {
      hint: error.details.fix ?? EVERY_ERROR[error.code].fix,
      ...(notes.length === 0 ? {} : { errors: notes }),
      ...(error.class === 'service' ? { headers: { 'retry-after': '5' } } : {}),
    })
  }
  return new Problem(500, 'E_INTERNAL', 'the server failed on this request', {
    hint: 'Its log says why; the request changed nothing that it did not answer.',
  })
}

function statusOf({ code, class: kind }: ScrapeError): number {
  if (/^E_\w+_NOT_FOUND$/.test(code)) return 404
  if (code === 'E_RUN_LOCKED') return 409
  if (kind === 'service') return 503
  if (kind === 'usage' || kind === 'definition' || kind === 'url' || kind === 'private-address') return 422
  return 500
}
