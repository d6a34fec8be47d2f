/** Turns the files that a handler or a browser wants to keep into tasks of the lane `files`. */
import { ScrapeError } from '../core/errors.ts'
import type { Download } from '../core/page.ts'
import type { FileOptions } from '../core/scraper.ts'
import { FILES_LANE, type Json, type NewTask, type Task } from '../core/task.ts'
import { normaliseUrl } from '../core/url.ts'
import type { FileOrder } from '../files/contract.ts'
import type { KeptDownload } from './contract.ts'
import { checkPriority, keyOf } from './enqueue.ts'

/** The route of file tasks: no scraper can have a route with this name. */
export const FILE_ROUTE = '$file'

export function downloadTask(
  page: { task: Task; base: string },
  url: string | URL,
  options: FileOptions = {},
): NewTask {
  const { name, meta, priority } = options
  const address = normaliseUrl(url, page.base)
  checkMeta(meta, address)
  checkPriority(priority, address)
  if (name !== undefined && typeof name !== 'string')
    throw new ScrapeError('E_ROUTE_DATA', `the name of a file is a text, not ${typeof name}`, { url: address })
  const order: FileOrder = {
    type: 'download',
    ...(name === undefined ? {} : { name }),
    ...(meta === undefined ? {} : { meta }),
  }
  return {
    ...fileTask(page.task, address, order),
    // A file is a different task than the page at the same URL, and a separate one for each user.
    key: `file ${keyOf(page.task.session ?? '', address)}`,
    ...(priority === undefined ? {} : { priority }),
  }
}

export async function downloadTasks(
  { task, base }: { task: Task; base: string },
  downloads: readonly Download[],
  keep: (download: Extract<Download, { kind: 'kept' }>) => Promise<KeptDownload>,
): Promise<NewTask[]> {
  const tasks: NewTask[] = []
  for (const [i, download] of downloads.entries()) {
    if (download.kind === 'link') {
      tasks.push(downloadTask({ task, base }, download.url, { name: download.name }))
      continue
    }
    const { path, lane } = await keep(download)
    const order: FileOrder = { type: 'upload', path, name: download.name }
    // Uses the download's number on the page: if the page is repeated, its files get the same tasks again.
    tasks.push({ ...fileTask(task, task.url, order), key: `upload ${task.id} ${i}`, lane })
  }
  return tasks
}

export function isFileTask({ route }: NewTask): boolean {
  return route === FILE_ROUTE
}

function fileTask({ session, depth }: Task, url: string, order: FileOrder): NewTask {
  const data = order as unknown as Json
  return { url, route: FILE_ROUTE, depth, lane: FILES_LANE, data, ...(session === undefined ? {} : { session }) }
}

function checkMeta(meta: unknown, url: string): void {
  try {
    JSON.stringify(meta)
  } catch (error) {
    throw new ScrapeError('E_ROUTE_DATA', `meta of file ${url} is not JSON: ${(error as Error).message}`, { url })
  }
}
