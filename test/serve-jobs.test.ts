/** Jobs from the board to the API: a real server, a real run, a board on loopback. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { until } from './fleet.ts'
import type { BoardServer } from './site/boards/ats-server.ts'
import { greenhouseJob, startGreenhouseMock } from './site/boards/greenhouse.ts'
import { type SluiceProcess, startSluice, temporaryFolder } from './sluice.ts'

const JOBS = 30
let board: BoardServer
let folder: ReturnType<typeof temporaryFolder>
let server: SluiceProcess
let base: string
/** What the board shows now. */
let shown = Array.from({ length: JOBS }, (_, n) => greenhouseJob(n))

before(async () => {
  board = await startGreenhouseMock({
    jobs: JOBS,
    trouble: ({ path }) =>
      path.endsWith('/jobs') ? { body: { jobs: shown, meta: { total: shown.length } } } : undefined,
  })
  folder = temporaryFolder()
  const address = new URL(board.url).host
  server = startSluice(['serve', '--port', '0', '--rps', '0', '--allow-address', address], { cwd: folder.path })
  let printed = ''
  server.child.stdout!.on('data', (text) => {
    printed += text
  })
  await until('it serves', () => /serving (http:\S+)\/v1/.test(printed))
  base = /serving (http:\S+)\/v1/.exec(printed)![1]!
})

after(async () => {
  server.child.kill('SIGTERM')
  assert.equal((await server.result).code, 0)
  await board[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

// biome-ignore lint/suspicious/noExplicitAny: answers of all shapes
async function get(path: string, status = 200): Promise<any> {
  const response = await fetch(base + path)
  const text = await response.text()
  assert.equal(response.status, status, text)
  return JSON.parse(text)
}

/** A whole run of the board, with all its results in the tables. */
async function runBoard(): Promise<void> {
  const response = await fetch(`${base}/v1/runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ scraper: 'greenhouse', args: { board: 'acme', site: board.url } }),
  })
  const { id } = (await response.json()) as { id: string }
  await until('the run is over and read', async () => {
    const { data } = await get('/v1/analytics/throughput?per=hour&scraper=greenhouse')
    return data.reduce((sum: number, one: { runs: number }) => sum + one.runs, 0) > runs
  })
  runs++
  assert.equal((await get(`/v1/runs/${id}`)).state, 'finished')
}
let runs = 0

describe('jobs of a server', () => {
  it('are found by what a user searches for, page by page', async () => {
    await runBoard()
    const first = await get('/v1/jobs?limit=20')
    const second = await get(`/v1/jobs?limit=20&cursor=${first.next}`)
    const ids = [...first.data, ...second.data].map(({ id }) => id)
    assert.deepEqual([new Set(ids).size, second.next], [30, null])
    const count = async (query: string) => (await get(`/v1/jobs?limit=100&${query}`)).data.length
    assert.equal(await count('q=rust'), 6)
    assert.equal(await count('q=backend+engin'), 8)
    assert.equal(await count('location=berlin'), 8)
    assert.equal(await count('location=de'), 8)
    assert.equal(await count(`company=${encodeURIComponent('acme & sons inc')}`), 30)
    assert.equal(await count('employment_type=full_time'), 15)
    assert.equal(await count('source=lever'), 0)
    assert.equal(await count('salary_min=1'), 0)
    assert.equal(await count('status=gone'), 0)
    assert.equal(await count(`q=${encodeURIComponent(`' | "x" & (* NOT`)}`), 0)
  })

  it('report what changed and what is gone', async () => {
    shown = shown.slice(1)
    shown[0]!.title = 'Principal Frontend Engineer 1'
    await runBoard()
    const [gone] = (await get('/v1/jobs?status=gone')).data
    assert.equal(gone.title, 'Backend Engineer 0')
    const { history, sources, metrics } = await get(`/v1/jobs/${gone.id}`)
    assert.deepEqual(
      history.map(({ type }: { type: string }) => type),
      ['gone', 'created'],
    )
    assert.deepEqual([sources.length, sources[0].source_job_id, metrics.times_seen], [1, '4000000', 1])
    const [changed] = (await get('/v1/jobs?q=principal')).data
    const [update] = (await get(`/v1/jobs/${changed.id}`)).history
    assert.deepEqual(
      [update.type, update.changed, update.before],
      ['updated', ['title'], { title: 'Frontend Engineer 1' }],
    )
    assert.equal((await get('/v1/jobs/999999999', 404)).code, 'E_JOB_NOT_FOUND')
  })

  it('have statistics for every question', async () => {
    const analytics = (name: string) => get(`/v1/analytics/${name}`)
    const [today] = (await analytics('jobs-per-day')).data
    assert.deepEqual([today.new, today.active, today.updated, today.gone], [30, 30, 1, 1])
    assert.deepEqual((await analytics('jobs-per-day?source=lever')).data, [])
    assert.deepEqual((await analytics('by-company')).data[0].jobs, 30)
    assert.equal((await analytics('by-location')).data[0].jobs, 8)
    assert.deepEqual((await analytics('salary-histogram')).data, [])
    assert.deepEqual((await analytics('salary-trend')).data, [])
    const [trend] = (await analytics('hiring-trends')).data
    assert.deepEqual([trend.new, trend.gone, trend.net, trend.change], [30, 1, 29, null])
    const [quality] = (await analytics('quality')).data
    assert.deepEqual([quality.source, quality.completeness.title, quality.completeness.salary], ['greenhouse', 1, 0])
    assert.ok(quality.score > 0.5 && quality.score < 1)
    assert.deepEqual((await analytics('duplicates')).sharedJobs, 0)
    const [speed] = (await analytics('throughput')).data
    assert.deepEqual([speed.runs, speed.successRate, speed.errors], [2, 1, []])
    assert.equal((await get('/v1/companies?q=Acme')).data[0].jobs, 29)
    assert.equal((await get('/v1/analytics/quality?from=2026-02-02&to=2026-02-01', 400)).code, 'E_REQUEST')
  })
})
