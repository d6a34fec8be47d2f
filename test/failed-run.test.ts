/** A run that did all it could and is over `failAt` or below `expect` has failed: exit code 1 and the same state everywhere. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { until } from './fleet.ts'
import { startServe } from './serve.ts'
import { sluice, temporaryFolder } from './sluice.ts'

const SOURCE = join(import.meta.dirname, '..', 'src', 'index.ts')
const ZOD = join(import.meta.dirname, '..', 'node_modules', 'zod', 'index.js')

const scraperText = (name: string, more: string) => `import { defineScraper } from '${SOURCE}'
import * as z from '${ZOD}'
export default defineScraper({
  name: '${name}',
  args: z.object({ site: z.url() }),
  item: z.object({ url: z.string() }),
  routes: { page: {} },
  start: ({ args, enqueue }) => enqueue('page', ['/', '/gone'].map((path) => new URL(path, args.site))),
  handlers: { page: ({ url, emit }) => emit({ url: url.href }) },
  ${more}
})
`

test('marks a run over failAt, or below expect, as failed in its record, in ps and in the API, and does not resume it', async () => {
  const server = createServer((request, response) =>
    response.writeHead(request.url === '/gone' ? 404 : 200, { 'content-type': 'text/html' }).end('<h1>hello</h1>'),
  ).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const site = `http://127.0.0.1:${(server.address() as { port: number }).port}/`
  using folder = temporaryFolder()
  const { path } = folder
  mkdirSync(join(path, 'scrapers'))
  writeFileSync(join(path, 'scrapers', 'many-gone.ts'), scraperText('many-gone', "limits: { failAt: '5%' }"))
  writeFileSync(
    join(path, 'scrapers', 'too-few.ts'),
    scraperText('too-few', "limits: { failAt: '90%' }, expect: { items: { min: 2 } },"),
  )
  try {
    await using served = await startServe([], { cwd: path })
    for (const [name, why] of [
      ['many-gone', /50\.0 % of pages failed, over failAt/],
      ['too-few', /1 items, expected at least 2/],
    ] as const) {
      const file = join('scrapers', `${name}.ts`)
      const run = await sluice(['run', file, '--arg', `site=${site}`, '--rps', '0', '--json'], { cwd: path })
      assert.equal(run.code, 1, run.stderr)
      const record = JSON.parse(run.stdout)
      assert.deepEqual([record.state, record.exitCode, record.isComplete], ['failed', 1, true])
      assert.match(record.reason, why)
      assert.equal(JSON.parse(readFileSync(join(path, 'runs', name, 'latest', 'run.json'), 'utf8')).state, 'failed')
      const get = async (route: string) =>
        (await (await fetch(`${served.url}/v1${route}`)).json()) as {
          state: string
          data: { id: string; state: string }[]
        }
      assert.equal((await get(`/runs/${record.id}`)).state, 'failed')
      await until('the list has it', async () =>
        (await get('/runs')).data.some(
          (one: { id: string; state: string }) => one.id === record.id && one.state === 'failed',
        ),
      )
      const unfinished = await sluice(['ps', '--json'], { cwd: path })
      assert.deepEqual(JSON.parse(unfinished.stdout).runs, [], 'nothing is left to do')
      const all = await sluice(['ps', '--all', '--json'], { cwd: path })
      assert.equal(JSON.parse(all.stdout).runs.find((one: { id: string }) => one.id === record.id).state, 'failed')
      const resumed = await sluice(['run', file, '--resume'], { cwd: path })
      assert.match(resumed.stderr, /no unfinished run/)
    }
  } finally {
    server.close()
  }
})
