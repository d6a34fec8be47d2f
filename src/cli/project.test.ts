/** init, new and list: the files they create run and compile. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type BooksSite, startBooksSite } from '../../test/site/books.ts'
import { reply, startHttpServer } from '../../test/site/http-server.ts'
import { sluice, temporaryFolder } from '../../test/sluice.ts'
import { startDemoSite } from '../app/demo/demo-site.ts'

const TSC = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url))
const folder = temporaryFolder()
const project = join(folder.path, 'shop')
let site: BooksSite

before(async () => {
  site = await startBooksSite({ products: 60 })
  const { code, stderr } = await sluice(['init', 'shop'], { cwd: folder.path })
  assert.equal(code, 0, stderr)
})

after(async () => {
  await site[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

test('init adds missing files, and overwrites nothing', async () => {
  const readme = join(project, 'README.md')
  writeFileSync(readme, 'mine')
  rmSync(join(project, 'tsconfig.json'))
  const { code, stdout } = await sluice(['init', 'shop'], { cwd: folder.path })
  assert.equal(code, 0)
  assert.match(stdout, /made 1 file in .*\n {2}tsconfig\.json\nkept as it is: \d+ files that were there/)
  assert.equal(readFileSync(readme, 'utf8'), 'mine')
})

test('init lists the templates when it is asked for an unknown one', async () => {
  const { code, stderr } = await sluice(['init', 'other', '--template', 'toString'], { cwd: folder.path })
  assert.equal(code, 2)
  assert.match(stderr, /basic, browser, api, jobs, distributed/)
})

test('run without a name runs the only scraper, and lists them if there are several', async () => {
  const several = join(folder.path, 'several')
  mkdirSync(join(several, 'scrapers'), { recursive: true })
  const none = await sluice(['run'], { cwd: several })
  assert.deepEqual([none.code, /there is none/.test(none.stderr)], [2, true])
  await using demo = await startDemoSite(0)
  const only = await sluice(['run', '--site', demo.url, '--rps', '0', '--json'], { cwd: project })
  assert.equal(only.code, 0, only.stderr)
  assert.equal(JSON.parse(only.stdout).items.new, 24)
  for (const name of ['one', 'two']) writeFileSync(join(several, `scrapers/${name}.ts`), 'export default 1\n')
  const two = await sluice(['run'], { cwd: several })
  assert.equal(two.code, 2)
  assert.match(two.stderr, /in \.\/scrapers: one, two/)
})

test('new guesses selectors with which the scraper reads every page', async () => {
  const made = await sluice(['new', 'demo', site.url], { cwd: project })
  assert.equal(made.code, 0, made.stderr)
  assert.match(made.stdout, /links article h3 a · next li\.next a, li\.prev a, li\.previous a · title h1/)
  const { code, stdout, stderr } = await sluice(['run', 'demo', '--rps', '0', '--json'], { cwd: project })
  assert.equal(code, 0, stderr)
  const { items, fieldFill } = JSON.parse(stdout)
  assert.deepEqual([items.new, items.invalid, fieldFill.title, fieldFill.price], [60, 0, 1, 1])
})

/**
 * A shop whose list has nothing but links: 45 products, ten per page, with links to the next page, the previous page and home.
 */
function startPlainShop() {
  const pageOf = (target: string): string => {
    const { pathname, searchParams } = new URL(target, 'http://shop.test/')
    if (pathname.startsWith('/p/')) return `<title>Thing</title><h1>Thing ${pathname.slice(3)}</h1><a href="/">Home</a>`
    const page = Number(searchParams.get('page') ?? 1)
    const things = Array.from({ length: 45 }, (_, i) => `<a href="/p/${i + 1}">Thing ${i + 1}</a>`)
    const back = page > 1 ? `<a rel="prev" href="/?page=${page - 1}">Back</a>` : ''
    const on = page < 5 ? `<a rel="next" href="/?page=${page + 1}">On</a>` : ''
    return `<title>Shop</title><a href="/">Home</a>${things.slice(10 * page - 10, 10 * page).join('')}${back}${on}`
  }
  const handle = (target: string) => reply({ body: target === '/robots.txt' ? '' : pageOf(target) })
  return startHttpServer({ port: 0, handle })
}

test('new distinguishes the pages of a list from its entries if all of them are plain links', async () => {
  await using shop = await startPlainShop()
  const made = await sluice(['new', 'plain', `http://127.0.0.1:${shop.port}/`], { cwd: project })
  assert.equal(made.code, 0, made.stderr)
  const { code, stdout, stderr } = await sluice(['run', 'plain', '--rps', '0', '--json'], { cwd: project })
  assert.equal(code, 0, stderr)
  const { items, pages } = JSON.parse(stdout)
  assert.deepEqual([items.new, items.invalid, pages.failed], [45, 0, 0])
})

/** A shop with 27 products, nine per page, that numbers the pages of its list beside the link to the next one. */
function startNumberedShop(pathOf: (page: number) => string, strays: string[]) {
  const numbers = [1, 2, 3]
  const lists = new Map([['/', 1], ...numbers.map((page) => [pathOf(page), page] as const)])
  const nav = strays.map((path) => `<li><a href="${path}">More</a></li>`).join('')
  const bodyOf = (target: string): string => {
    const page = lists.get(target)
    if (page === undefined) return `<title>Thing</title><h1>${target}</h1><a href="/">Home</a>`
    const things = Array.from({ length: 9 }, (_, i) => `<a href="/item/${9 * page - 8 + i}">Thing</a>`).join('')
    const on = page < 3 ? `<a rel=next href="${pathOf(page + 1)}">On</a>` : ''
    return `<title>Shop</title>${nav}${things}${numbers.map((n) => `<a href="${pathOf(n)}">${n}</a>`).join('')}${on}`
  }
  const handle = (target: string) => reply({ body: target === '/robots.txt' ? '' : bodyOf(target) })
  return startHttpServer({ port: 0, handle })
}

const STRAYS = ['/about', '/help/faq', '/contact', '/terms']
const NUMBERED = [
  { name: 'by-path', start: '/list/1', strays: [], pathOf: (page: number) => `/list/${page}` },
  { name: 'among-strays', start: '/list/1', strays: STRAYS, pathOf: (page: number) => `/list/${page}` },
  { name: 'from-home', start: '/', strays: STRAYS, pathOf: (page: number) => `/list/${page}` },
  { name: 'by-query', start: '/', strays: STRAYS, pathOf: (page: number) => `/?page=${page}` },
]
for (const { name, start, strays, pathOf } of NUMBERED)
  test(`new does not mistake a numbered page of a list for an entry (${name})`, async () => {
    await using shop = await startNumberedShop(pathOf, strays)
    const made = await sluice(['new', name, `http://127.0.0.1:${shop.port}${start}`], { cwd: project })
    assert.equal(made.code, 0, made.stderr)
    const { code, stdout, stderr } = await sluice(['run', name, '--rps', '0', '--json'], { cwd: project })
    assert.equal(code, 0, stderr)
    assert.equal(JSON.parse(stdout).items.new, 27)
    const items = await sluice(['export', name, '--format', 'jsonl'], { cwd: project })
    const titles = items.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).title as string)
    assert.deepEqual(
      titles.filter((title) => !title.startsWith('/item/')),
      [],
    )
  })

test('new creates a scraper for a site it cannot fetch, and says so', async () => {
  const { code, stderr } = await sluice(['new', 'away', 'http://127.0.0.1:1/shop'], { cwd: project })
  assert.equal(code, 0)
  assert.match(stderr, /could not be fetched/)
  assert.match(readFileSync(join(project, 'scrapers/away/away.ts'), 'utf8'), /127\.0\.0\.1:1\/shop/)
})

test('new rejects invalid names and addresses, and names that are taken', async () => {
  const [name, url, taken] = await Promise.all([
    sluice(['new', 'My Shop', site.url], { cwd: project }),
    sluice(['new', 'other', 'shop.example'], { cwd: project }),
    sluice(['new', 'example', site.url, '--offline'], { cwd: project }),
  ])
  assert.deepEqual([name.code, url.code, taken.code], [2, 2, 2])
  assert.match(name.stderr, /cannot name a scraper/)
  assert.match(url.stderr, /https:\/\/shop\.example\//)
  assert.match(taken.stderr, /there already/)
  assert.equal(existsSync(join(project, 'scrapers/other')), false)
})

test('new turns a page without links into a scraper of that page, whatever its address', async () => {
  const made = await sluice(['new', 'single', `${site.url}healthz?q=it's`], { cwd: project })
  assert.equal(made.code, 0, made.stderr)
  const { code, stdout } = await sluice(['run', 'single', '--dry-run'], { cwd: project })
  assert.equal(code, 0)
  assert.match(stdout, /page {2}http.*healthz\?q=it%27s/)
})

test('everything created compiles under the project’s own tsconfig', async () => {
  const { code, stdout } = await new Promise<{ code: number | null; stdout: string }>((resolve) => {
    const child = execFile(process.execPath, [TSC, '-p', project, '--singleThreaded'], (_error, stdout) =>
      resolve({ code: child.exitCode, stdout }),
    )
  })
  assert.equal(code, 0, stdout)
})

test('list shows own scrapers before the bundled ones, and names the one that does not load', async () => {
  mkdirSync(join(project, 'scrapers/broken'))
  writeFileSync(join(project, 'scrapers/broken/broken.ts'), 'export default 42\n')
  const { code, stdout } = await sluice(['list', '--json'], { cwd: project })
  assert.equal(code, 2)
  const listed = JSON.parse(stdout) as { name: string; error: string | null; args: object[]; routes: object }[]
  const names = listed.map(({ name }) => name)
  assert.ok(names.indexOf('example') < names.indexOf('books'))
  assert.match(listed.find(({ name }) => name === 'broken')?.error ?? '', /no scraper as its default export/)
  const books = listed.find(({ name }) => name === 'books')
  assert.deepEqual(books?.args[2], { name: 'details', default: false })
  assert.deepEqual(Object.keys(books?.routes ?? {}), ['listing', 'book'])
})

test('list and suggestions omit the bundled job boards unless asked for them', async () => {
  const names = async (...flags: string[]) =>
    (await sluice(['list', '--names', ...flags], { cwd: project })).stdout.split('\n')
  assert.ok(!(await names()).includes('greenhouse'))
  assert.ok((await names('--all')).includes('greenhouse'))
  assert.ok((await names('--boards', 'linkedin')).includes('linkedin'))
  const { code, stderr } = await sluice(['run', 'greenhuse'], { cwd: project })
  assert.equal(code, 2)
  assert.doesNotMatch(stderr, /greenhouse/)
  assert.match(stderr, /sluice list --all/)
})

test('a template lists the packages that it needs, and says how to install missing ones', async () => {
  const hook = `import { registerHooks } from 'node:module'
registerHooks({ resolve(name, context, next) {
  if (name === 'pg') throw Object.assign(new Error('hidden'), { code: 'ERR_MODULE_NOT_FOUND' })
  return next(name, context)
} })`
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}` }
  const init = ['init', 'fleet', '--template', 'distributed']
  const { code, stdout, stderr } = await sluice(init, { cwd: folder.path, env })
  assert.equal(code, 0, stderr)
  const { dependencies } = JSON.parse(readFileSync(join(folder.path, 'fleet/package.json'), 'utf8'))
  assert.deepEqual(Object.keys(dependencies), ['pg'])
  assert.ok(stdout.includes(`npm install pg@${dependencies.pg}\n`), stdout)
  const again = await sluice(init, { cwd: folder.path })
  assert.doesNotMatch(again.stdout, /npm install/)
})
