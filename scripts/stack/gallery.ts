/** The second job of the stack: a site with files, and a run whose pages and files are processed by different workers. */
import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import type { Client } from '../../src/server/api/client.ts'
import { content, type FileServer, startFileServer } from '../../test/files/file-server.ts'
import { until } from '../../test/fleet.ts'

const PAGES = 4
const FILES_PER_PAGE = 3
const RUN_MS_MAX = 60_000

/** Every file has different bytes. */
export async function startGallery(): Promise<FileServer> {
  return await startFileServer({
    '*': (request, response) => {
      const [, kind, number = '0'] = request.url!.split('/')
      if (kind === 'file') return response.end(content(10_000, Number(number)))
      if (kind !== 'page') return response.writeHead(404).end()
      response.setHeader('content-type', 'text/html')
      const numbers = Array.from({ length: FILES_PER_PAGE }, (_, i) => Number(number) * FILES_PER_PAGE + i)
      return response.end(numbers.map((one) => `<a href="/file/${one}">a file</a>`).join(''))
    },
  })
}

export async function startGalleryRun(client: Client, site: string): Promise<string> {
  const body = { scraper: 'gallery', args: { site, pages: PAGES }, limits: { perHost: { rps: 0 } } }
  return (await client.startRun({ body })).id
}

/** Returns how many files are in the shared volume. */
export async function checkGallery(client: Client, id: string, volume: string): Promise<number> {
  const isFinished = async () => (await client.getRun({ params: { id } })).state === 'finished'
  await until(`run ${id} of files is finished`, isFinished, RUN_MS_MAX)
  const { files, items } = await client.getRun({ params: { id } })
  const wanted = PAGES * FILES_PER_PAGE
  assert.deepEqual([items.new, files.stored, files.failed], [PAGES, wanted, 0], 'items, files stored and failed')
  const found = globSync('**', { cwd: volume, withFileTypes: true }).filter((entry) => entry.isFile())
  assert.ok(found.length >= wanted, `the volume has ${found.length} files`)
  return wanted
}
