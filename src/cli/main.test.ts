import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { startSluice } from '../../test/sluice.ts'

test('a reader that closes our output early causes no stack trace', async () => {
  const { child, result } = startSluice(['help'])
  child.stdout!.destroy() // as `| head` does, before the first line is printed
  const { code, stderr } = await result
  assert.equal(code, 0, stderr)
  assert.equal(stderr, '')
})

test('help lists the commands in groups, and fits the terminal', async () => {
  const { stdout } = await startSluice(['help']).result
  const groups = [...stdout.matchAll(/^([A-Z][a-z ]+):$/gm)].map(({ 1: name }) => name)
  assert.deepEqual(groups, ['Options', 'Run', 'Inspect', 'Write scrapers', 'Fleet', 'Server', 'Machine'])
  assert.deepEqual(
    stdout.split('\n').filter((line) => line.length > 80),
    [],
  )
})

test('the help of run shows defaults and bounds, with rare flags last', async () => {
  const { stdout } = await startSluice(['help', 'run']).result
  const [usual, advanced] = stdout.split('Advanced options:') as [string, string]
  assert.match(usual, /--retries <N> .*\(0 to 100;\s+default: 3\)/)
  assert.match(advanced, /--lease <TIME> [^-]*\(100 ms to 1 d;\s+default:\s+30 s\)/)
  assert.doesNotMatch(usual, /--lease/)
})

test('commands only print through the functions that mask secrets', () => {
  // What they write themselves: raw data, cursor movements, a counter that is redrawn.
  const allowed = ['output.ts', 'export.ts', 'fetch.ts', 'watch-screen.ts', 'bench.ts', 'shell.ts']
  const folder = new URL('.', import.meta.url)
  const files = readdirSync(folder).filter((name) => /(?<!\.test)\.ts$/.test(name) && !allowed.includes(name))
  const others = files.filter((name) =>
    /std(?:out|err)\.write\(|console\./.test(readFileSync(new URL(name, folder), 'utf8')),
  )
  assert.deepEqual(others, [])
})

test('masking secrets loads no HTTP client: every run masks its record before its first request', () => {
  const code = `const { redactAll } = await import(${JSON.stringify(new URL('../core/redact.ts', import.meta.url).href)})
    redactAll({ list: [{ a: 1 }], map: new Map() })
    console.log(process.moduleLoadList.filter((name) => name.includes('deps/undici')).length)`
  assert.equal(execFileSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' }).trim(), '0')
})
