/** Keys, secrets in files and the audit log as an operator uses them: real commands against a real server. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { until } from './fleet.ts'
import { startServe } from './serve.ts'
import { sluice, temporaryFolder } from './sluice.ts'

test('replaces keys without a gap, and records refused attempts in the audit log', async () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'api-key')
  writeFileSync(file, 'first-key-of-the-file\n')
  const cwd = folder.path
  await using server = await startServe([], { cwd, env: { SLUICE_API_KEY_FILE: file } })
  const status = async (key: string, path = '/v1/runs', method = 'GET') => {
    const response = await fetch(server.url + path, { method, headers: { authorization: `Bearer ${key}` } })
    await response.body?.cancel()
    return response.status
  }
  assert.equal(await status('first-key-of-the-file'), 200)
  assert.equal(await status('second-key-of-the-file'), 401)
  writeFileSync(file, 'second-key-of-the-file\nfirst-key-of-the-file\nread:watching-key-of-the-file\n')
  await until('the new key of the file counts', async () => (await status('second-key-of-the-file')) === 200)
  assert.equal(await status('first-key-of-the-file'), 200, 'both count while both are in the file')

  const make = async (...args: string[]) => JSON.parse((await sluice([...args, '--json'], { cwd })).stdout)
  const old = await make('key', 'create', 'grafana', '--expires', '90d')
  const next = await make('key', 'rotate', old.id, '--grace', '1h')
  assert.deepEqual([next.name, next.role, next.replaces], ['grafana', 'read', old.id])
  assert.deepEqual([await status(old.key), await status(next.key)], [200, 200])
  assert.equal(await status(next.key, '/v1/audit'), 403)
  const { keys } = await make('key', 'list')
  assert.equal(keys[0].successorId, next.id)
  assert.ok(Date.parse(keys[1].expiresAt) - Date.now() > 89 * 86_400_000, 'it lives as long as its predecessor was to')
  assert.notEqual(keys[0].usedAt, null)
  const again = await sluice(['key', 'rotate', old.id], { cwd })
  assert.equal(again.code, 2)
  assert.match(again.stderr, /has a successor/)

  const asked = async () => {
    const response = await fetch(`${server.url}/v1/audit`, {
      headers: { authorization: 'Bearer second-key-of-the-file' },
    })
    return ((await response.json()) as { data: Record<string, unknown>[] }).data
  }
  await until('the refusals are written down', async () => (await asked()).some((line) => line['status'] === 403))
  const refused = (await asked())
    .filter(({ status: ended }) => ended !== 429) // polling for the new key may have exceeded the rate limit
    .map(({ caller, address, status: ended, action }) => [caller, address, ended, action])
  assert.deepEqual(refused, [
    ['grafana', '127.0.0.1', 403, 'GET /v1/audit'],
    ['127.0.0.1', '127.0.0.1', 401, 'GET /v1/runs'],
  ])
  const listed = await sluice(['audit', '--json'], { cwd })
  assert.ok(JSON.parse(listed.stdout).entries.length >= 2)
  for (const secret of ['first-key-of-the-file', 'second-key-of-the-file', old.key, next.key])
    assert.ok(!listed.stdout.includes(secret))

  const watching = [
    await status('watching-key-of-the-file', '/metrics'),
    await status('watching-key-of-the-file', '/v1/audit'),
  ]
  assert.deepEqual(watching, [200, 403], 'a key of the file may have a role')

  const hook = await make('webhook', 'add', 'https://example.com/hook')
  const rotated = await make('webhook', 'rotate', 'example.com', '--grace', '2h')
  assert.notEqual(rotated.secret, hook.secret)
  assert.ok(Date.parse(rotated.oldUntil) - Date.now() > 7_000_000)
})

test('rate limits one caller, not another, and records it in the audit log', async () => {
  using folder = temporaryFolder()
  const cwd = folder.path
  const env = { SLUICE_API_KEY: 'the-key-of-the-admin' }
  const made = await sluice(['key', 'create', 'eager', '--quiet'], { cwd })
  await using server = await startServe(['--api-rps', '1'], { cwd, env })
  const ask = async (key: string) => {
    const response = await fetch(`${server.url}/v1/runs`, { headers: { authorization: `Bearer ${key}` } })
    await response.body?.cancel()
    return response
  }
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask(made.stdout.trim())))
  const refused = answers.filter(({ status }) => status === 429)
  assert.ok(refused.length > 0 && refused.length < 20)
  assert.equal(refused[0]!.headers.get('retry-after'), '1')
  assert.equal((await ask(env.SLUICE_API_KEY)).status, 200)
  const lines = async () => JSON.parse((await sluice(['audit', '--json'], { cwd })).stdout).entries
  await until('it is written down', async () => (await lines()).length > 0)
  assert.deepEqual([(await lines())[0].caller, (await lines())[0].status], ['eager', 429])
})

test('rejects a key in the environment that splits into short ones, without showing it', async () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'api-key')
  writeFileSync(file, 'geheim-of-sixteen-characters\nread:geheim')
  for (const env of [{ SLUICE_API_KEY: 'geheim,half-of-sixteen-chars' }, { SLUICE_API_KEY_FILE: file }]) {
    const { code, stdout, stderr } = await sluice(['serve', '--port', '0'], { cwd: folder.path, env })
    assert.equal(code, 2, stderr)
    assert.match(stderr, /E_OPTION.*part [12] of 2 in SLUICE_API_KEY\w* is shorter than 16 characters/)
    assert.doesNotMatch(stdout + stderr, /geheim|half/)
  }
})

test('treats an empty file like an empty variable: not set', async () => {
  using folder = temporaryFolder()
  const empty = join(folder.path, 'empty')
  writeFileSync(empty, ' \n')
  const env = { SLUICE_FRONTIER_FILE: empty, SLUICE_STORE_FILE: '', SLUICE_API_KEY_FILE: empty }
  const cwd = folder.path
  const explained = await sluice(['config', '--json'], { cwd, env })
  assert.deepEqual(JSON.parse(explained.stdout), JSON.parse((await sluice(['config', '--json'], { cwd })).stdout))
  for (const SLUICE_API_KEY_FILE of [empty, '']) {
    await using server = await startServe([], { cwd, env: { ...env, SLUICE_API_KEY_FILE } })
    assert.equal((await fetch(`${server.url}/v1/runs`)).status, 200, 'no key is wanted on loopback')
  }
})

test('reads options from files, and no command shows their content', async () => {
  using folder = temporaryFolder()
  const env: Record<string, string> = {}
  const secrets = {
    FRONTIER: 'postgres://u:geheim@127.0.0.1:1/x',
    STORE: 'sqlite:store.db',
    REDIS: 'rediss://u:geheim@127.0.0.1:1/0',
    PROXIES: 'http://u:geheim@127.0.0.1:1',
  }
  for (const [name, value] of Object.entries(secrets)) {
    const path = join(folder.path, name)
    writeFileSync(path, `${value}\n`)
    env[`SLUICE_${name}_FILE`] = path
  }
  for (const args of [
    ['config', '--explain'],
    ['config', '--json'],
    ['doctor'],
    ['start', 'books', '--mode', 'distributed'],
    ['ps'],
  ]) {
    // biome-ignore format: one line reads better
    const { stdout, stderr } = await sluice(args, { cwd: folder.path, env })
    assert.doesNotMatch(stdout + stderr, /geheim/, args.join(' '))
  }
  const config = await sluice(['config', '--json'], { cwd: folder.path, env })
  assert.match(config.stdout, /127\.0\.0\.1:1\/x/, 'it was read, without the line end')
  const missing = await sluice(['ps'], { cwd: folder.path, env: { SLUICE_FRONTIER_FILE: '/no/such/file' } })
  assert.equal(missing.code, 2)
  assert.match(missing.stderr, /SLUICE_FRONTIER_FILE: \/no\/such\/file cannot be read/)
})
