/** The items of a run as an answer: one page of JSON with a cursor, or all of them streamed. */
import { Problem } from '../../api/problem.ts'
import type { StreamedAnswer } from '../../api/server.ts'
import { exportItems } from '../look/export-items.ts'
import type { OpenRun } from '../look/open-run.ts'

export interface ItemsQuery {
  format: 'json' | 'jsonl' | 'csv'
  limit: number
  cursor?: string | undefined
}

export async function itemsAnswer(run: OpenRun, { format, limit, cursor }: ItemsQuery): Promise<StreamedAnswer> {
  if (format === 'json') {
    const from = cursor === undefined ? 0 : Number(cursor)
    if (!Number.isSafeInteger(from) || from < 0) throw new Problem(400, 'E_REQUEST', 'query.cursor: not one of ours')
    return { contentType: 'application/json; charset=utf-8', body: pageOfItems(run, from, limit) }
  }
  const contentType = { jsonl: 'application/jsonl; charset=utf-8', csv: 'text/csv; charset=utf-8' }[format]
  const disposition = `attachment; filename="${run.record.scraper}-${run.record.id}.${format}"`
  return {
    contentType,
    headers: { 'content-disposition': disposition },
    body: exportItems({ run, format, formulaSafe: true }),
  }
}

async function* pageOfItems(run: OpenRun, from: number, limit: number): AsyncGenerator<string> {
  yield '{"data":['
  let at = 0
  let given = 0
  let isMore = false
  const items = await run.items()
  for await (const batch of items?.batches() ?? []) {
    for (const { json } of batch) {
      if (at++ < from) continue
      if (given === limit) {
        isMore = true
        break
      }
      yield given++ === 0 ? json : `,${json}`
    }
    if (isMore) break
  }
  yield `],"next":${isMore ? `"${from + limit}"` : 'null'}}`
}
