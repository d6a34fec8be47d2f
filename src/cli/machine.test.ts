/** doctor, config, explain and completion. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { sluice, temporaryFolder } from '../../test/sluice.ts'

const BIN = fileURLToPath(new URL('../../bin/sluice', import.meta.url))
const LOCAL = ['--host', 'localhost'] // no test reaches the internet

test('doctor finds this machine ready, and suggests improvements', async () => {
  using folder = temporaryFolder()
  const { code, stdout } = await sluice(['doctor', ...LOCAL, '--json'], { cwd: folder.path })
  const { findings, isReady } = JSON.parse(stdout) as {
    findings: { check: string; status: string; fix: string }[]
    isReady: boolean
  }
  assert.deepEqual([code, isReady], [0, true], stdout)
  const contact = findings.find(({ check }) => check === 'contact')
  assert.equal(contact?.status, 'warn')
  assert.match(contact?.fix ?? '', /SLUICE_CONTACT/)
})

test('doctor exits with 1 for what must be fixed and with 3 for a service that does not answer', async () => {
  using folder = temporaryFolder()
  writeFileSync(join(folder.path, 'sluice.config.ts'), 'export default { nonsense: 1 }\n')
  writeFileSync(join(folder.path, 'package.json'), '{"type":"module"}')
  const bad = await sluice(['doctor', ...LOCAL], { cwd: folder.path })
  assert.equal(bad.code, 1)
  assert.match(bad.stdout, /✘ fail +config +.*nonsense/)
  const env = { SLUICE_REDIS: 'redis://:hunter2@127.0.0.1:1' }
  const missing = await sluice(['doctor', ...LOCAL], { env })
  assert.equal(missing.code, 3)
  assert.match(missing.stdout, /✘ missing +redis +redis:\/\/\*\*\*@127\.0\.0\.1:1/)
  assert.ok(!missing.stdout.includes('hunter2'))
})

test('doctor asks the browser for its version, and does not mistake any program for one', async () => {
  using folder = temporaryFolder()
  const program = (name: string, script: string) => {
    writeFileSync(join(folder.path, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
    return join(folder.path, name)
  }
  const look = async (path: string) => {
    const { stdout } = await sluice(['doctor', ...LOCAL, '--json'], { env: { SLUICE_CHROME: path } })
    const { findings } = JSON.parse(stdout) as { findings: { check: string; status: string; what: string }[] }
    return findings.find(({ check }) => check === 'browser')!
  }
  const [real, other, silent, stuck] = await Promise.all([
    look(program('real', 'echo Chromium 156.0.8078.79')),
    look(program('other', 'echo "true (GNU coreutils) 9.1"')),
    look(program('silent', 'exit 1')),
    look(program('stuck', 'sleep 60')),
  ])
  const isRoot = process.getuid?.() === 0
  assert.match(real.what, /^Chromium 156\.0\.8078\.79 at .*\/real/)
  assert.deepEqual([real.status, /sandbox is off/.test(real.what)], isRoot ? ['warn', true] : ['ok', false])
  assert.equal(other.status, 'warn')
  assert.match(other.what, /does not look like a Chromium: --version says "true \(GNU/)
  assert.match(silent.what, /--version says nothing/)
  assert.match(stuck.what, /no answer within 5 s/)
})

test('config shows each value and where it comes from, and no secret', async () => {
  using folder = temporaryFolder()
  writeFileSync(join(folder.path, 'sluice.config.ts'), 'export default { rps: 3, timeout: "5s" }\n')
  writeFileSync(join(folder.path, 'package.json'), '{"type":"module"}')
  writeFileSync(join(folder.path, '.env'), 'SLUICE_RETRIES=7\n')
  const env = { SLUICE_TIMEOUT: '9s', SLUICE_FRONTIER: 'postgres://me:hunter2@db/x' }
  const { code, stdout, stderr } = await sluice(['config', '--pages', '12', '--json'], { cwd: folder.path, env })
  assert.equal(code, 0, stderr)
  const { options } = JSON.parse(stdout) as { options: { name: string; value: unknown; origin: string }[] }
  const shown = new Map(options.map(({ name, value, origin }) => [name, [value, origin]]))
  assert.deepEqual(shown.get('rps'), [3, 'sluice.config.ts'])
  assert.deepEqual(shown.get('retries'), ['7', '.env'])
  assert.deepEqual(shown.get('timeout'), ['9s', 'environment SLUICE_TIMEOUT'])
  assert.deepEqual(shown.get('pages'), ['12', 'flag --pages'])
  assert.deepEqual(shown.get('concurrency'), [16, 'default'])
  assert.ok(!stdout.includes('hunter2'))
})

test('config shows no password that contains a space or stands in a URL without slashes', async () => {
  const env = { SLUICE_SINK: 'foo:u:hunter2@h', SLUICE_FRONTIER: 'postgres://me:pa hunter2@db/x', SLUICE_REDIS: 'redis://me:pa hunter2@h' } // biome-ignore format: one line reads better
  const { code, stdout, stderr } = await sluice(['config', '--json'], { env })
  assert.equal(code, 0, stderr)
  assert.match(stdout, /"foo:\*\*\*@h"[\s\S]*"redis:\/\/\*\*\*@h"/)
  assert.match(stdout, /"postgres:\/\/\*\*\*@db\/x"/)
  assert.ok(!stdout.includes('hunter2'))
  const refused = await sluice(['config', 'proxy'], { env: { SLUICE_PROXY: 'http://me:pa hunter2@h:1' } })
  assert.deepEqual([refused.code, /E_OPTION[\s\S]*a space in it is %20/.test(refused.stderr)], [2, true])
  assert.ok(!refused.stderr.includes('hunter2'))
})

test('shows the help about an invalid queue URL in full', async () => {
  const { stderr } = await sluice(['ps'], { env: { SLUICE_FRONTIER: 'postgres://u:pa/hunter2@db/x' } })
  assert.match(stderr, /For example postgres:\/\/user:password@localhost:5432\/sluice; in a password \/ is %2F/)
  assert.ok(!stderr.includes('hunter2'))
})

test('config --explain has bounds and a description for every option, and knows a scraper’s own limits', async () => {
  const { stdout } = await sluice(['config', '--explain'])
  assert.match(
    stdout,
    /rps = 10 {2}\(default\)\n {2}maximum requests per second .*\n {2}number, 0 to 100,000 · --rps · SLUICE_RPS/,
  )
  assert.match(stdout, /timeout = 30 s .*\n.*\n {2}duration, 10 ms to 1 h/)
  const one = await sluice(['config', 'per-host', '--scraper', 'books'])
  assert.match(one.stdout, /^perHost = 16 {2}\(scraper books\)/)
  const wrong = await sluice(['config', 'rsp'])
  assert.deepEqual([wrong.code, /did you mean rps\?/.test(wrong.stderr)], [2, true])
  const bad = await sluice(['config'], { env: { SLUICE_RPS: 'many' } })
  assert.deepEqual([bad.code, /rps \(environment SLUICE_RPS\)/.test(bad.stderr)], [2, true])
})

test('explain shows one error or all of them', async () => {
  const [one, all, wrong] = await Promise.all([
    sluice(['explain', 'e-tls', '--json']),
    sluice(['explain']),
    sluice(['explain', 'E_TSL']),
  ])
  const { code, verdict, exitCode } = JSON.parse(one.stdout)
  assert.deepEqual([code, verdict, exitCode], ['E_TLS', 'drop', null])
  assert.match(all.stdout, /E_OUTPUT +halt/)
  assert.equal(wrong.code, 2)
})

test('the bash completion completes commands, subcommands, flags, values and scrapers', async () => {
  const asked: [words: string[], expected: string][] = [
    [['doc'], 'doctor'],
    [['dlq', 're'], 'retry'],
    [['dlq', 'list', '--cl'], '--class'],
    [['run', 'books', '--robots', 'i'], 'ignore'],
    [['export', '--format', 'p'], 'parquet'],
    [['run', 'boo'], 'books'],
  ]
  const script = [
    `source <("${BIN}" completion bash)`,
    ...asked.map(
      ([words]) =>
        `COMP_WORDS=(sluice ${words.join(' ')}); COMP_CWORD=${words.length}; _sluice "${BIN}"; echo "\${COMPREPLY[*]}"`,
    ),
  ].join('\n')
  const text = await new Promise<string>((resolve, reject) =>
    execFile('/bin/bash', ['-c', script], (error, stdout) => (error ? reject(error) : resolve(stdout))),
  )
  assert.deepEqual(
    text.trim().split('\n'),
    asked.map(([, expected]) => expected),
  )
})

test('the completions of all shells include every command and flag', async () => {
  const [bash, zsh, fish] = await Promise.all(['bash', 'zsh', 'fish'].map((shell) => sluice(['completion', shell])))
  for (const { stdout } of [bash!, zsh!]) assert.match(stdout, /'dlq\/groups'/)
  assert.match(fish!.stdout, /__fish_seen_subcommand_from dlq; and __fish_seen_subcommand_from retry' -l code/)
  const other = await sluice(['completion', 'tcsh'])
  assert.deepEqual([other.code, /bash \| zsh \| fish/.test(other.stderr)], [2, true])
})
