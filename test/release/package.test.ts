/** The result of `npm pack`: installed into an empty project, everything a new user types works from there. */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, globSync, lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { FIRST, RUN } from '../../scripts/bundle.ts'
import { PRINT_LOADED } from '../print-loaded.ts'
import { type BooksSite, startBooksSite } from '../site/books.ts'
import { temporaryFolder } from '../sluice.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)
const folder = temporaryFolder()
const copy = join(folder.path, 'copy')
const app = join(folder.path, 'app')
const installed = join(app, 'node_modules/sluice')
const env = {
  ...process.env,
  PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
  HOME: folder.path, // caches of the installed command go here
  npm_config_cache: process.env['npm_config_cache'] ?? join(process.env['HOME'] ?? '', '.npm'),
  NO_COLOR: '1',
  NODE_TEST_CONTEXT: undefined,
  NODE_COMPILE_CACHE: undefined,
}
let site: BooksSite

/** Standard output; throws with both outputs unless the exit code is 0. */
async function type(command: string, args: readonly string[], cwd = app): Promise<string> {
  return (await run(command, [...args], { cwd, env, maxBuffer: 2 ** 26 })).stdout
}

const install = (...packages: string[]) =>
  type('npm', ['install', ...packages, '--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts'])
const npx = (...args: string[]) => type('npx', ['sluice', ...args])

before(async () => {
  site = await startBooksSite({ products: 40 })
  // A copy: packing replaces package.json for a moment, which concurrent tests must not see.
  const listed = await type('git', ['ls-files', '-co', '--exclude-standard', '-z'], ROOT)
  for (const path of listed.split('\0').filter(Boolean))
    if (globSync(path, { cwd: ROOT }).length > 0) cpSync(join(ROOT, path), join(copy, path))
  for (const brought of ['node_modules', '.deps']) symlinkSync(join(ROOT, brought), join(copy, brought))
  await type('npm', ['pack'], copy)
  mkdirSync(app)
  await type('npm', ['init', '-y'])
  await install(join(copy, 'sluice-0.1.0.tgz'))
})

after(async () => {
  await site[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

test('packing leaves the project as it was', () => {
  assert.deepEqual(readFileSync(join(copy, 'package.json')), readFileSync(join(ROOT, 'package.json')))
  assert.deepEqual(globSync('{dist,package.json.*}', { cwd: copy }), [])
})

test('undoes packing that was killed with the next, without losing an edit made in the meantime', async () => {
  // Empty entries: what is compiled does not matter here, and compiling all of it is 10 s of CPU.
  const small = join(folder.path, 'small')
  for (const path of [
    'package.json',
    'tsconfig.json',
    'bin',
    'templates',
    'scripts/pack.ts',
    'scripts/build.ts',
    'scripts/bundle.ts',
  ])
    cpSync(join(copy, path), join(small, path), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(small, 'node_modules'))
  const manifest = join(small, 'package.json')
  const ours = readFileSync(manifest, 'utf8')
  const joined = [...RUN, ...FIRST].map((file) => `src/${file.replace(/js$/, 'ts')}`)
  for (const entry of [...Object.values<string>(JSON.parse(ours).exports), ...joined]) {
    mkdirSync(dirname(join(small, entry)), { recursive: true })
    writeFileSync(join(small, entry), 'export const one = 1\n')
  }
  const pack = (step: string) => type(process.execPath, ['scripts/pack.ts', step], small)
  await pack('stage')
  const staged = readFileSync(manifest, 'utf8')
  assert.match(staged, /dist\/src\/index\.js/)
  writeFileSync(manifest, staged.replace('"MIT"', '"ISC"'))
  await assert.rejects(pack('restore'), /was changed while/)
  writeFileSync(manifest, staged)
  assert.match(JSON.parse(staged).scripts.prepack, /pack\.ts stage/, 'the next npm pack begins with it')
  await pack('restore')
  assert.equal(readFileSync(manifest, 'utf8'), ours)
})

test('the package has what it needs, and nothing from the tests', () => {
  const files = globSync('**/*', { cwd: installed })
  for (const needed of ['LICENSE', 'README.md', 'CHANGELOG.md', 'dist/bin/sluice', 'dist/src/index.d.ts'])
    assert.ok(files.includes(needed), needed)
  const typescript = files.filter((file) => /(?<!\.d)\.ts$/.test(file) && !file.startsWith('dist/templates/'))
  assert.deepEqual(typescript, [])
  const unwanted = /\.test[.-]|^(?:dist\/)?(?:test|bench|deploy|docs)\/|\/fixtures\/|dist\/scrapers\/.*\/pages\//
  assert.deepEqual(
    files.filter((file) => unwanted.test(file)),
    [],
  )
})

test('a plain install is small: at most 120 packages and 45 MB', async () => {
  const listed = (await type('npm', ['ls', '--all', '--parseable'])).trim().split('\n')
  assert.ok(listed.length > 20 && listed.length <= 120, `${listed.length} packages`)
  const inBlocks = globSync('**/*', { cwd: join(app, 'node_modules') }).map(
    (file) => Math.ceil(lstatSync(join(app, 'node_modules', file)).size / 4096) * 4096,
  )
  const megabytes = inBlocks.reduce((sum, bytes) => sum + bytes, 0) / 2 ** 20
  assert.ok(megabytes <= 45, `${megabytes.toFixed(1)} MB`)
})

test('names the command that installs what a plain install lacks', async () => {
  const fails = async (...args: string[]) => {
    const { stderr } = await npx(...args).then(
      () => assert.fail(`${args.join(' ')} succeeded`),
      (error: { stderr: string }) => error,
    )
    return /E_PACKAGE_MISSING[\s\S]*?fix: (npm install .*?) {2,}/.exec(stderr)?.[1] ?? stderr
  }
  const { peerDependencies } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
  const command = (...names: string[]) =>
    `npm install ${names.map((name) => `${name}@${peerDependencies[name].slice(1)}`).join(' ')}`
  assert.equal(await fails('serve'), command('fastify', 'prom-client'))
  assert.equal(await fails('run', 'books', '--frontier', 'postgres://127.0.0.1:1/none'), command('pg'))
  assert.equal(
    await fails('run', 'books', '--frontier', 'amqp://127.0.0.1:1/none', '--redis', 'redis://127.0.0.1:1/0'),
    command('rabbitmq-client', 'ioredis'),
  )
})

test('the package declares every package that it imports, and runs nothing when it is installed', () => {
  const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
  assert.deepEqual(Object.keys(manifest.scripts), ['prepack', 'postpack'])
  assert.deepEqual([manifest.devDependencies, manifest.private], [undefined, undefined])
  const known = new Set([...Object.keys(manifest.dependencies), ...builtinModules, 'sluice'])
  const missing = globSync('dist/{src,scrapers}/**/*.js', { cwd: installed }).flatMap((file) =>
    [
      ...readFileSync(join(installed, file), 'utf8').matchAll(
        /^(?:import|(?:import|export) [^;'"]*from) ['"]([@\w][^'"]*)['"]/gm,
      ),
    ]
      .map(([, name]) => /^(?:@[^/]+\/)?[^/]+/.exec(name!)![0])
      .filter((name) => !name.startsWith('node:') && !known.has(name))
      .map((name) => `${file}: ${name}`),
  )
  assert.deepEqual(missing, [])
})

test('a run loads few files of the package before its first request', async () => {
  const args = ['run', 'books', '--site', site.url, '--pages', '1', '--quiet', '--out', 'few']
  const command = run(join(app, 'node_modules/.bin/sluice'), args, { cwd: app, env: { ...env, ...PRINT_LOADED } })
  const { stdout } = await command.catch((error: { stdout: string }) => error)
  const files = (JSON.parse(stdout) as string[]).filter((url) => url.includes('/sluice/dist/'))
  for (const joined of ['commands', 'queue', 'run'])
    assert.ok(files.some((url) => url.endsWith(`/src/joined/${joined}.js`)))
  assert.ok(files.length <= 40, `${files.length} files: add what loads the others to RUN in scripts/bundle.ts`)
})

test('init and run work as typed, without a network', async () => {
  const own = readFileSync(join(app, 'package.json'), 'utf8')
  await npx('init')
  assert.equal(readFileSync(join(app, 'package.json'), 'utf8'), own)
  assert.match(await npx('run'), /items {3}24 new · 0 changed · 0 invalid/)
  assert.match(await npx('test', 'example'), /13 pages of example read as recorded/)
})

test('a user’s scraper compiles against the shipped types, and a mistake in it does not', async () => {
  const tsc = (...args: string[]) => type(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), ...args])
  await tsc('-p', '.')
  await tsc('-p', '.', '--skipLibCheck', 'false') // even without the optional packages
  const example = readFileSync(join(app, 'scrapers/example/example.ts'), 'utf8')
  mkdirSync(join(app, 'wrong'))
  writeFileSync(join(app, 'wrong/package.json'), '{"type":"module"}')
  writeFileSync(join(app, 'wrong/wrong.ts'), example.replace("title: $.text('h1')", 'title: 42'))
  const wrong = { extends: '../tsconfig.json', include: ['*.ts'] }
  writeFileSync(join(app, 'wrong/tsconfig.json'), JSON.stringify(wrong))
  await assert.rejects(tsc('-p', 'wrong'), (error: { stdout: string }) => /TS2322/.test(error.stdout))
})

test('the tsconfig of a project works with the oldest supported TypeScript', async () => {
  const older = join(folder.path, 'typescript')
  mkdirSync(older)
  await type('npm', ['init', '-y'], older)
  await type('npm', ['install', 'typescript@5.9', '--prefer-offline', '--no-audit', '--no-fund'], older)
  await type(process.execPath, [join(older, 'node_modules/typescript/bin/tsc'), '-p', app])
})

test('every entry can be imported', async () => {
  const entries = ['sluice', 'sluice/client', 'sluice/jobs', 'sluice/testing']
  const code = `for (const name of ${JSON.stringify(entries)}) console.log(Object.keys(await import(name)).length)`
  const counts = await type(process.execPath, ['--input-type=module', '-e', code])
  assert.ok(
    counts
      .trim()
      .split('\n')
      .map(Number)
      .every((count) => count > 0),
    counts,
  )
})

test('bundled scrapers are found, and run in several processes', async () => {
  const names = (await npx('list', '--all', '--names')).split('\n')
  assert.equal(names[0], 'example')
  for (const bundled of ['books', 'greenhouse']) assert.ok(names.includes(bundled), bundled)
  const record = JSON.parse(await npx('run', 'books', '--site', site.url, '--processes', '2', '--rps', '0', '--json'))
  assert.equal(record.items.new, 40)
})

test('crawl and doctor work', async () => {
  const record = JSON.parse(await npx('crawl', site.url, '--depth', '1', '--rps', '0', '--json'))
  assert.ok(record.items.new > 0)
  // Its exit code depends on this machine; whether it finds the hoisted packages depends on us.
  const checks = await npx('doctor').catch((error: { stdout: string }) => error.stdout)
  assert.match(checks, /ok +packages +\d+ packages at their locked versions/)
})

test('serve answers once its packages are installed', async () => {
  await install('fastify@^5', 'prom-client@^15')
  const server = spawn(join(app, 'node_modules/.bin/sluice'), ['serve', '--port', '0'], { cwd: app, env })
  try {
    let said = ''
    for (const stream of [server.stdout, server.stderr]) stream.on('data', (text) => { said += text }) // biome-ignore format: one thing
    const url = await new Promise<string>((resolve, reject) => {
      const look = () => /http:\/\/127\.0\.0\.1:\d+/.test(said) && resolve(/http:\/\/127\.0\.0\.1:\d+/.exec(said)![0])
      for (const stream of [server.stdout, server.stderr]) stream.on('data', look)
      server.once('exit', () => reject(new Error(said)))
    })
    assert.equal((await fetch(`${url}/healthz`)).status, 200)
  } finally {
    server.kill('SIGTERM')
    if (server.exitCode === null) await once(server, 'exit')
  }
})

test('tells the user that Node is too old, in words that fit a package', async () => {
  const old = join(folder.path, 'old')
  mkdirSync(old)
  writeFileSync(join(old, 'node'), '#!/bin/sh\n[ "$1" = --version ] && echo v20.1.0 || echo false\n', { mode: 0o755 })
  const command = run(join(installed, 'dist/bin/sluice'), ['list'], { env: { ...env, PATH: `${old}:/usr/bin:/bin` } })
  await assert.rejects(command, (error: { code: number; stderr: string }) => {
    assert.equal(error.code, 2)
    assert.match(error.stderr, /needs Node 24 or later, and this machine has v20\.1\.0/)
    assert.doesNotMatch(error.stderr, /make setup/)
    return true
  })
})
