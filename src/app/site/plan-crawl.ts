/** What a site crawl covers, from the command line or from the run it resumes. */

import { fileURLToPath } from 'node:url'
import { ScrapeError } from '../../core/errors.ts'
import { isComplete } from '../../core/run.ts'
import { findRun, listRuns, type RunFolder } from '../../runs/run-folder.ts'
import { urlArgument } from '../tools/one-page.ts'
import { crawlName, parseSelected } from './site-crawl.ts'

interface CrawlRequest {
  url: string | undefined
  select: readonly string[] | undefined
  /** A run id, or true for the latest unfinished crawl. */
  resume: string | true | undefined
  out: string
}

interface CrawlPlan {
  name: string
  fields: string[]
  args: Record<string, unknown>
  resume: string | undefined
  /** The same crawl as a file, for worker processes. */
  file: string
}

const FILE = fileURLToPath(new URL('./site-crawl-scraper.ts', import.meta.url))

export function planCrawl(request: CrawlRequest): CrawlPlan {
  let { url, resume } = request
  // `--resume` takes an optional run, and so mistakes a URL that follows it for a run.
  if (url === undefined && typeof resume === 'string' && /^https?:/i.test(resume)) [url, resume] = [resume, true]
  if (resume !== undefined) return planResume({ ...request, url, resume })
  if (url === undefined) throw new ScrapeError('E_USAGE', 'crawl takes a URL', { fix: 'sluice crawl https://…/' })
  const start = urlArgument(url)
  const fields = parseSelected(request.select ?? [])
  const select = Object.fromEntries(fields.map(({ name, css, attr }) => [name, { css, ...(attr && { attr }) }]))
  const args = { url: start, select }
  return { name: crawlName(start), fields: fields.map((field) => field.name), args, resume: undefined, file: FILE }
}

/** A resumed crawl keeps its fields: they are the columns of its output file. */
function planResume({ url, resume, select, out }: CrawlRequest): CrawlPlan {
  if (select !== undefined)
    throw new ScrapeError('E_USAGE', 'a resumed crawl keeps its fields, so --select means nothing to it', {
      fix: 'Leave --select out, or start a new crawl without --resume.',
    })
  const folder = resume === true ? latestUnfinished(out, url) : findRun(out, resume)
  const args = (folder.readRecord()?.args ?? {}) as { url?: string; select?: object }
  if (args.url === undefined || !folder.scraper.startsWith('crawl-'))
    throw new ScrapeError('E_RUN_NOT_FOUND', `run ${folder.runId} is not a crawl`, {
      fix: `sluice run ${folder.scraper} --resume ${folder.runId}`,
    })
  const fields = Object.keys(args.select ?? {})
  return { name: folder.scraper, fields, args: {}, resume: folder.path, file: FILE }
}

function latestUnfinished(out: string, url: string | undefined): RunFolder {
  const name = url === undefined ? undefined : crawlName(urlArgument(url))
  const found = listRuns(out, name).find(
    (folder) => folder.scraper.startsWith('crawl-') && !isComplete(folder.readRecord() ?? { state: 'running' }),
  )
  if (found !== undefined) return found
  throw new ScrapeError('E_RUN_NOT_FOUND', `no unfinished crawl${url === undefined ? '' : ` of ${url}`} under ${out}`, {
    fix: 'Start a new one without --resume.',
  })
}
