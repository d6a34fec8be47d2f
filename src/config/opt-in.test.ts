/** Opt-in: no command fetches anything for a scraper that is off; and what turns it on. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { openSite } from '../../test/browser/site.ts'
import { sluice, temporaryFolder } from '../../test/sluice.ts'
import { workerPlaces } from '../cli/run-place.ts'
import { resolveConfig } from './config.ts'
import { loadScraper } from './load-scraper.ts'
import { isTurnedOn, unknownBoards } from './opt-in.ts'

const CORE = pathToFileURL(join(import.meta.dirname, '../core/scraper.ts')).href
const ZOD = import.meta.resolve('zod')
const SCRAPER = `
import { defineScraper } from '${CORE}'
import * as z from '${ZOD}'
export default defineScraper({
  name: 'shy',
  optIn: 'its site asks robots to stay away.',
  args: z.object({ site: z.url() }),
  item: z.object({ title: z.string() }),
  routes: { page: { match: '/' } },
  start: ({ args, enqueue }) => enqueue('page', args.site),
  handlers: { page: ({ $, emit }) => emit({ title: $.text('h1') }) },
})`

function projectWith(scraper: string): Disposable & { path: string } {
  const folder = temporaryFolder()
  mkdirSync(join(folder.path, 'scrapers'))
  writeFileSync(join(folder.path, 'scrapers', 'shy.ts'), scraper)
  return folder
}

test('no command fetches anything for a scraper that is off; each says why and how to turn it on', async () => {
  await using site = await openSite({ '/': '<h1>hello</h1>' })
  using project = projectWith(SCRAPER)
  const url = `${site.url}/`
  const commands = [
    ['run', 'shy', '--site', url],
    ['start', 'shy', '--site', url, '--mode', 'distributed'],
    ['worker', '--scraper', 'shy'],
    ['try', 'shy', url, '--site', url],
    ['check', 'shy', '--site', url],
    ['produce', '--scraper', 'shy', '--url', url],
  ]
  for (const command of commands) {
    const { code, stderr } = await sluice(command, { cwd: project.path })
    assert.equal(code, 2, `${command.join(' ')}: ${stderr}`)
    assert.match(stderr, /E_OPT_IN {2}"shy" is off until you turn it on\n {2}why: its site asks robots to stay away\./)
    assert.match(stderr, /fix: .*--boards shy, SLUICE_BOARDS=shy, or `boards: \['shy'\]` in sluice\.config\.ts/)
  }
  assert.deepEqual(site.asked, [])
  assert.equal(existsSync(join(project.path, 'runs')), false)
})

test('a flag, the environment or the config file turns it on; the list shows it', async () => {
  await using site = await openSite({ '/': '<h1>hello</h1>' })
  using project = projectWith(SCRAPER)
  const cwd = project.path
  const run = ['run', 'shy', '--site', `${site.url}/`, '--allow-address', new URL(site.url).host]
  assert.equal((await sluice([...run, '--boards', 'books', '--boards', 'shy', '--record'], { cwd })).code, 0)
  assert.equal((await sluice(run, { cwd, env: { SLUICE_BOARDS: 'books,shy' } })).code, 0)
  assert.match((await sluice(['list'], { cwd })).stdout, /switch +off, turned on by --boards shy: its site asks robots/)
  assert.equal((await sluice(['test', 'shy'], { cwd })).code, 0, 'saved pages are read without the switch')
  writeFileSync(join(cwd, 'sluice.config.ts'), `export default { boards: ['shy'] }`)
  assert.equal((await sluice(run, { cwd })).code, 0)
  const { stdout } = await sluice(['list', '--json'], { cwd })
  const listed = JSON.parse(stdout) as { name: string; optIn: unknown }[]
  assert.deepEqual(listed.find(({ name }) => name === 'shy')?.optIn, {
    isOn: true,
    why: 'its site asks robots to stay away.',
  })
  assert.equal(listed.find(({ name }) => name === 'books')?.optIn, null)
})

test('the worker command of a fleet includes an opt-in that was given as a flag', async () => {
  const placesOf = async (request: Parameters<typeof resolveConfig>[0]) =>
    workerPlaces(await resolveConfig({ cwd: '/nowhere', env: {}, ...request }))
  assert.deepEqual(await placesOf({ flags: { boards: ['shy', 'timid'] } }), ['--boards', 'shy', '--boards', 'timid'])
  assert.deepEqual(await placesOf({ env: { SLUICE_BOARDS: 'shy' } }), [])
})

test('a name turns on that scraper and nothing else', () => {
  const isOn = (boards: string[], optIn: string | undefined = 'why') =>
    isTurnedOn({ name: 'shy', ...(optIn === undefined ? {} : { optIn }) }, { values: { boards } } as never)
  assert.deepEqual([isOn([]), isOn(['shyer', 'sh', '']), isOn(['shy']), isOn(['a,shy'])], [false, false, true, true])
  assert.equal(isTurnedOn({ name: 'books' }, { values: { boards: [] as string[] } } as never), true)
})

test('the five big boards are off by default, and employers’ own boards need no opt-in', async () => {
  const optInOf = async (name: string) => (await loadScraper(name)).scraper.optIn
  for (const name of ['linkedin', 'indeed', 'glassdoor', 'ziprecruiter', 'google'])
    assert.match((await optInOf(name)) ?? '', /prohibit/, name)
  for (const name of ['books', 'greenhouse', 'lever', 'jsonld']) assert.equal(await optInOf(name), undefined, name)
})

test('an unknown name in boards is reported, with the one that was probably meant', async () => {
  const told = (boards: string[]) => unknownBoards({ name: 'shy' }, { values: { boards } } as never)
  assert.deepEqual(told([]), [])
  assert.deepEqual(told(['linkedin', 'shy,books', '']), [])
  assert.deepEqual(told(['linkdin', 'shy,qqqqqqqq']), [
    'boards: there is no scraper "linkdin"; did you mean linkedin?',
    'boards: there is no scraper "qqqqqqqq"',
  ])
  const off = await sluice(['run', 'linkedin', '--boards', 'linkdin'])
  assert.equal(off.code, 2)
  assert.match(off.stderr, /E_OPT_IN.*\n.*\n {2}boards: there is no scraper "linkdin"; did you mean linkedin\?/)
  const typo = await sluice(['run', 'boks'])
  assert.equal(typo.code, 2)
  assert.match(typo.stderr, /E_SCRAPER_NOT_FOUND.*\n {2}did you mean books\?/)
})
