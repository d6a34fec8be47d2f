/** `worker --tor`: each worker has a Tor daemon of its own, and takes it along when it goes. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { delimiter, dirname } from 'node:path'
import { test } from 'node:test'
import { Fleet, until } from './fleet.ts'
import { postgresForTests } from './services/postgres.ts'
import { torForTests } from './services/tor.ts'
import { startBooksSite } from './site/books.ts'
import { startSluice, temporaryFolder } from './sluice.ts'

test('two workers have two daemons, with folders and ports of their own, and leave none behind', {
  timeout: 60_000,
}, async () => {
  const tor = await torForTests()
  await using database = await postgresForTests()
  await using site = await startBooksSite({ products: 20 })
  using folder = temporaryFolder()
  const { run_id: runId } = await new Fleet({ frontier: database.url, cwd: folder.path }).start('--site', site.url)
  const env = {
    ...tor.env,
    SLUICE_FRONTIER: database.url,
    TMPDIR: folder.path,
    PATH: `${dirname(tor.path)}${delimiter}${process.env['PATH']}`,
  }
  const start = () =>
    startSluice(['worker', '--scraper', 'books', '--run-id', runId, '--tor'], { env, cwd: folder.path })
  const workers = [start(), start()]
  const heard = workers.map(({ child }) => {
    const text = { stderr: '' }
    child.stderr!.on('data', (chunk) => {
      text.stderr += chunk
    })
    return text
  })
  const daemonOf = ({ stderr }: { stderr: string }) => /Tor (\d+) listens at (socks5:\/\/127\.0\.0\.1:\d+)/.exec(stderr)
  await until('both daemons listen', () => heard.every((text) => daemonOf(text) !== null))
  const daemons = heard.map((text) => ({ pid: Number(daemonOf(text)![1]), socks: daemonOf(text)![2] }))
  assert.equal(new Set(daemons.map(({ pid }) => pid)).size, 2)
  assert.equal(new Set(daemons.map(({ socks }) => socks)).size, 2)
  assert.equal(readdirSync(folder.path).filter((name) => name.startsWith('tor-')).length, 2)
  for (const { pid } of daemons) assert.ok(isTor(pid))
  for (const { child } of workers) child.kill('SIGTERM')
  for (const { result } of workers) assert.equal((await result).code, 4, (await result).stderr)
  for (const { pid } of daemons) assert.ok(!isTor(pid), `Tor ${pid} is still there`)
  assert.equal(site.stats().requests, 0, 'nothing went past Tor')
})

function isTor(pid: number): boolean {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    return /^Name:\s+tor$/m.test(status) && !/^State:\s+Z/m.test(status)
  } catch {
    return false
  }
}
