/** stats, ps, watch and dlq of a run that downloads files: none of them counts as a page. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { type SluiceResult, sluice, startSluice, temporaryFolder } from '../../test/sluice.ts'

const FILES = 5
const folder = temporaryFolder()

/** Files are held until the test opens the gate; one does not exist. */
const held: ServerResponse[] = []
let isOpen = false
const giveFile = (response: ServerResponse) =>
  response.writeHead(200, { 'content-type': 'text/csv' }).end(`a,b\n${held.length}\n`)
const server = createServer(({ url }, response) => {
  if (url === '/list') response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>files</h1>')
  else if (!url!.startsWith('/files/') || url === '/files/missing.csv') response.writeHead(404).end()
  else if (isOpen) giveFile(response)
  else held.push(response)
}).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const site = `http://127.0.0.1:${(server.address() as { port: number }).port}`

after(() => {
  server.closeAllConnections()
  server.close()
  folder[Symbol.dispose]()
})

const SCRAPER = `
import { defineScraper } from 'sluice'
import * as z from 'zod'
export default defineScraper({
  name: 'filed',
  item: z.object({ n: z.number() }),
  key: 'n',
  routes: { list: { match: '/list' } },
  start: ({ enqueue }) => enqueue('list', { url: '${site}/list', session: 'alice' }),
  handlers: {
    async list({ file, emit }) {
      await file('/files/missing.csv', { priority: 1 })
      for (let i = 1; i <= ${FILES}; i++) await file('/files/' + i + '.csv', i === 1 ? { name: 'first.csv' } : {})
      await emit({ n: 1 })
    },
  },
})
`
const scraper = join(folder.path, 'filed.ts')
writeFileSync(scraper, SCRAPER)
const out = join(folder.path, 'runs')

const json = ({ stdout }: SluiceResult) => JSON.parse(stdout)

test('shows a run that only downloads as such, while it is running and afterwards', async () => {
  const run = startSluice(['run', scraper, '--out', out, '--rps', '0', '--retries', '0', '--fail-at', '90%'])
  const look = async (...words: string[]) => await sluice([...words, '--out', out])
  try {
    let numbers = { files: { pending: 0, claimed: 0, stored: 0, same: 0, failed: 0 }, remaining: 0, completed: 0 }
    while (numbers.files.failed === 0 || held.length === 0) {
      const result = await look('stats', 'filed', '--json')
      if (result.code === 0) numbers = json(result)
    }
    assert.equal(numbers.files.pending + numbers.files.claimed, FILES)
    assert.equal(numbers.remaining, FILES)
    const listed = await look('ps')
    assert.match(listed.stdout, /done +left +failed +pages\/s +workers +age +files +why\n/)
    // One page done, none left, none failed; the rest are files.
    assert.match(listed.stdout, /running +1 +0 +0 .* 5 left, 1 failed/)
    assert.match((await look('stats', 'filed')).stdout, /files +0 stored, 1 failed, \d waiting, \d under way, 0 B\n/)
  } finally {
    isOpen = true
    for (const response of held) giveFile(response)
  }
  const { code, stderr } = await run.result
  assert.equal(code, 0, stderr)
  const ended = json(await look('stats', 'filed', '--json'))
  const { stored, same, ...rest } = ended.files
  assert.deepEqual([stored + same, rest], [FILES, { pending: 0, claimed: 0, failed: 1 }])
  // Only one of the many tasks was a page.
  assert.ok(Math.abs(ended.rate - 1000 / ended.durationMs) < 0.01, `${ended.rate} pages/s in ${ended.durationMs} ms`)
  const watched = json(await look('watch', 'filed', '--json'))
  assert.deepEqual(watched.files, ended.files)
  const runs = json(await look('ps', '--all', '--json')).runs
  assert.deepEqual(runs[0].files, ended.files)
})

test('names the user of a dead letter', async () => {
  const { letters } = json(await sluice(['dlq', 'list', 'filed', '--out', out, '--json']))
  assert.deepEqual(
    letters.map(({ session }: { session: string }) => session),
    ['alice'],
  )
  const list = await sluice(['dlq', 'list', 'filed', '--out', out])
  assert.match(list.stdout, /1 try +alice +http.*missing\.csv/)
  const show = await sluice(['dlq', 'show', 'filed', letters[0].id, '--out', out])
  assert.match(show.stdout, /session +alice\n/)
  assert.equal(json(await sluice(['dlq', 'show', 'filed', letters[0].id, '--out', out, '--json'])).session, 'alice')
})

test('try lists files with name and URL, for the given user', async () => {
  const args = ['try', scraper, `${site}/list`, '--session', 'bob']
  const result = await sluice([...args, '--json'])
  const { session, files, links } = json(result)
  assert.deepEqual([result.code, session, files.length, links], [0, 'bob', FILES + 1, []])
  assert.deepEqual(files.slice(1, 3), [
    { name: 'first.csv', url: `${site}/files/1.csv` },
    { name: null, url: `${site}/files/2.csv` },
  ])
  const { stdout } = await sluice(args)
  assert.match(
    stdout,
    /session bob[\s\S]*6 files would be saved\n {2}http.*missing\.csv\n {2}first\.csv {2}http.*\/files\/1\.csv\n/,
  )
})
