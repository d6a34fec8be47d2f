/** Every template of `sluice init`: it compiles, its saved pages are read as recorded, and it runs against the demo site. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type DemoSite, startDemoSite } from '../../src/app/demo/demo-site.ts'
import { PROJECTS } from '../../src/app/tools/templates.ts'
import { chromiumForTests } from '../services/chromium.ts'
import { postgresForTests } from '../services/postgres.ts'
import { sluice, temporaryFolder } from '../sluice.ts'

const TSC = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url))
const SCRAPERS: Readonly<Record<string, { name: string; items: number }>> = {
  basic: { name: 'example', items: 24 },
  browser: { name: 'drawn', items: 8 },
  api: { name: 'books-api', items: 24 },
  jobs: { name: 'board', items: 5 },
  distributed: { name: 'shop', items: 24 },
}
const folder = temporaryFolder()
let demo: DemoSite

before(async () => {
  demo = await startDemoSite(0)
  for (const template of Object.keys(SCRAPERS)) {
    const { code, stderr } = await sluice(['init', template, '--template', template], { cwd: folder.path })
    assert.equal(code, 0, stderr)
  }
})

after(async () => {
  await demo[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

test('every template has a scraper', () => {
  assert.deepEqual(Object.keys(PROJECTS), Object.keys(SCRAPERS))
})

test('every template compiles under the shared tsconfig', () => {
  const configs = Object.keys(SCRAPERS).map((name) => readFileSync(join(folder.path, name, 'tsconfig.json'), 'utf8'))
  assert.equal(new Set(configs).size, 1)
  assert.deepEqual(JSON.parse(configs[0]!).include, ['scrapers', 'sluice.config.ts'])
  // In one compilation: each also reads and checks the sources, which is 6 s of CPU.
  const files = globSync('*/{scrapers/**/*.ts,sluice.config.ts}', { cwd: folder.path })
  assert.ok(files.length >= 2 * configs.length, files.join())
  writeFileSync(
    join(folder.path, 'tsconfig.json'),
    JSON.stringify({ extends: './basic/tsconfig.json', include: [], files }),
  )
  const { status, stdout } = spawnSync(process.execPath, [TSC, '-p', folder.path, '--singleThreaded'], {
    encoding: 'utf8',
  })
  assert.equal(status, 0, stdout)
})

for (const [template, { name, items }] of Object.entries(SCRAPERS)) {
  describe(`the template ${template}`, () => {
    const cwd = join(folder.path, template)

    test('passes its test offline', async () => {
      const { code, stdout, stderr } = await sluice(['test', name, '--json'], { cwd })
      assert.equal(code, 0, stderr)
      const { passed, notReplayable } = JSON.parse(stdout)
      assert.ok(passed + notReplayable > 0, stdout)
    })

    test('reads every item', async () => {
      const env = template === 'browser' ? { SLUICE_CHROME: await chromiumForTests() } : {}
      if (template === 'distributed') return await runAsFleet(cwd, items)
      const { code, stdout, stderr } = await sluice(['run', '--site', demo.url, '--json'], { cwd, env })
      assert.equal(code, 0, stderr)
      assert.equal(JSON.parse(stdout).items.new, items)
    })
  })
}

async function runAsFleet(cwd: string, items: number): Promise<void> {
  await using database = await postgresForTests()
  const env = { SLUICE_FRONTIER: database.url }
  const started = await sluice(['start', 'shop', '--site', demo.url, '--json'], { cwd, env })
  assert.equal(started.code, 0, started.stderr)
  const { run_id } = JSON.parse(started.stdout) as { run_id: string }
  const work = () => sluice(['worker', '--scraper', 'shop', '--run-id', run_id], { cwd, env })
  for (const { code, stderr } of await Promise.all([work(), work()])) assert.equal(code, 0, stderr)
  const { stdout } = await sluice(['export', run_id, '--format', 'jsonl'], { cwd, env })
  assert.equal(stdout.trim().split('\n').length, items)
}
