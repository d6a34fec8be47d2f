/** The response with a run's items: one page of JSON with a cursor, or all of them streamed. */

import { ScrapeError } from '../../../core/errors.ts'
import { exportItems } from '../../../runs/export-items.ts'
import type { OpenRun, PlacedLine } from '../../../runs/run-view.ts'
import { Problem } from '../../../server/api/problem.ts'
import type { StreamedAnswer } from '../../../server/api/server.ts'

interface ItemsQuery {
  format: 'json' | 'jsonl' | 'csv'
  limit: number
  cursor?: string | undefined
}

export async function itemsAnswer(run: OpenRun, { format, limit, cursor }: ItemsQuery): Promise<StreamedAnswer> {
  if (format === 'json')
    return { contentType: 'application/json; charset=utf-8', body: pageOfItems(await itemsAfter(run, cursor), limit) }
  const contentType = { jsonl: 'application/jsonl; charset=utf-8', csv: 'text/csv; charset=utf-8' }[format]
  const disposition = `attachment; filename="${run.record.scraper}-${run.record.id}.${format}"`
  return {
    contentType,
    headers: { 'content-disposition': disposition },
    body: exportItems({ run, format, formulaSafe: true }),
  }
}

async function itemsAfter(run: OpenRun, cursor: string | undefined) {
  try {
    return (await (await run.items())?.after(cursor)) ?? []
  } catch (error) {
    if (error instanceof ScrapeError && error.code === 'E_OPTION')
      throw new Problem(400, 'E_REQUEST', 'query.cursor: not one of ours')
    throw error
  }
}

type Batches = AsyncIterable<readonly PlacedLine[]> | readonly never[]

async function* pageOfItems(batches: Batches, limit: number): AsyncGenerator<string> {
  yield '{"data":['
  let given = 0
  let last = ''
  let isMore = false
  for await (const batch of batches) {
    const page = batch.slice(0, limit - given)
    for (const { json, position } of page) {
      yield given++ === 0 ? json : `,${json}`
      last = position
    }
    isMore = page.length < batch.length
    if (isMore) break
  }
  yield `],"next":${isMore ? JSON.stringify(last) : 'null'}}`
}
