/** The complete worked example: several users log in with a browser, their pages are crawled, their files downloaded. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { FileRecord } from '../src/files/contract.ts'
import { chromiumForTests } from './services/chromium.ts'
import { passwordOf, reportBytes, startPortal } from './site/portal.ts'
import { sluice, temporaryFolder } from './sluice.ts'

const EXAMPLE = fileURLToPath(new URL('../docs/examples/reports.ts', import.meta.url))
const USERS = ['alice', 'bob', 'carol']
const REPORTS = 5
const FILE_BYTES = 50_000

async function environment(): Promise<NodeJS.ProcessEnv> {
  const passwords = JSON.stringify(Object.fromEntries(USERS.map((user) => [user, passwordOf(user)])))
  return { SLUICE_CHROME: await chromiumForTests(), REPORTS_PASSWORDS: passwords }
}

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

/** What must be there in the end, whatever happened on the way. */
function checkFiles(records: FileRecord[]): void {
  const reports = records.filter(({ url }) => url.includes('/files/'))
  assert.equal(reports.length, USERS.length * REPORTS)
  for (const user of USERS) {
    for (let number = 1; number <= REPORTS; number++) {
      const expected = reportBytes(user, number, FILE_BYTES)
      const record = reports.find(({ url }) => url.endsWith(`/files/${user}-${number}.csv`))!
      assert.equal(record.user, user)
      assert.equal(record.bytes, FILE_BYTES)
      assert.equal(record.sha256, sha256(expected))
      assert.deepEqual(record.meta, { report: number })
      assert.match(record.name, /^report.*\.csv$/)
      assert.ok(readFileSync(fileURLToPath(record.where)).equals(expected), `${record.where} has other bytes`)
    }
  }
  // Downloads that a page created itself in the browser.
  const summaries = records.filter(({ url }) => url.endsWith('/summary'))
  assert.deepEqual(summaries.map(({ user }) => user).sort(), USERS)
  assert.equal(new Set(summaries.map(({ where }) => readFileSync(fileURLToPath(where), 'utf8'))).size, USERS.length)
}

const recordsOf = (lines: string) =>
  lines
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as FileRecord)

test('reports.ts downloads the reports of each user, and never those of another', async () => {
  await using portal = await startPortal({ reports: REPORTS, fileBytes: FILE_BYTES })
  using folder = temporaryFolder()
  const env = await environment()
  const given = ['--arg', `base=${portal.url}`, '--arg', `users=${USERS.join(',')}`, '--rps', '0', '--out', folder.path]
  const { code, stdout, stderr } = await sluice(['run', EXAMPLE, ...given, '--json'], { env })
  assert.equal(code, 0, stderr)
  const record = JSON.parse(stdout)
  assert.equal(record.items.new, USERS.length * REPORTS)
  assert.deepEqual(
    { ok: record.pages.ok, failed: record.pages.failed, stored: record.files.stored, recorded: record.files.recorded },
    { ok: USERS.length * 5, failed: 0, stored: USERS.length * 6, recorded: USERS.length * 6 }, // login, 3 lists, summary
  )
  assert.equal(portal.crossed, 0)
  assert.equal(portal.logins, USERS.length)
  const listed = await sluice(['files', '--out', folder.path, '--json'], { env })
  checkFiles(recordsOf(listed.stdout))
  const run = join(folder.path, 'reports', 'latest')
  assert.deepEqual(existsSync(join(run, 'spool')) ? readdirSync(join(run, 'spool', 'uploads')) : [], [])
  const alices = await sluice(['files', '--out', folder.path, '--user', 'alice'], { env })
  assert.equal(alices.stdout.trim().split('\n').length, REPORTS + 1)
  assert.doesNotMatch(alices.stdout, /bob|carol/)
})

test('turns a user whose login fails into a dead letter with a screenshot, without affecting the others', async () => {
  await using portal = await startPortal({ reports: 1, fileBytes: 100 })
  using folder = temporaryFolder()
  const env = {
    ...(await environment()),
    REPORTS_PASSWORDS: JSON.stringify({ alice: 'wrong', bob: passwordOf('bob') }),
  }
  const given = ['--arg', `base=${portal.url}`, '--rps', '0', '--retries', '0', '--timeout', '3s', '--out', folder.path]
  const { code, stderr } = await sluice(['run', EXAMPLE, ...given], { env })
  assert.equal(code, 1, stderr)
  const { stdout } = await sluice(['dlq', 'list', '--out', folder.path, '--json'], { env })
  const [letter] = JSON.parse(stdout).letters
  const shown = await sluice(['dlq', 'show', letter.id, '--out', folder.path, '--json'], { env })
  const { url, picture, head } = JSON.parse(shown.stdout)
  assert.match(url, /\/login$/)
  assert.match(head, /Sign in/)
  assert.equal(readFileSync(picture).subarray(1, 4).toString(), 'PNG')
  const files = await sluice(['files', '--out', folder.path, '--json'], { env })
  assert.deepEqual([...new Set(recordsOf(files.stdout).map(({ user }) => user))], ['bob'])
})
