/** The test runner: which files it runs, how it handles one that hangs, and which leftovers it finds. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../../test/sluice.ts'
import { allFiles, isUnit } from './choose-files.ts'
import { followTraces } from './leftovers.ts'

test('unit tests are the files beside the code that need no service and start no process', () => {
  assert.ok(isUnit('src/crawl/retry.test.ts'))
  assert.ok(isUnit('scrapers/books/books.test.ts'))
  assert.ok(isUnit('src/fetch/browser/find-chromium.test.ts'), 'test/sluice.ts is imported for a folder only')
  assert.ok(!isUnit('src/frontier/postgres/postgres.test.ts'), 'a service')
  assert.ok(!isUnit('src/server/webhooks/webhooks.test.ts'), 'a service, imported by a module it imports')
  assert.ok(!isUnit('src/cli/main.test.ts'), 'the command line')
  assert.ok(!isUnit('src/frontier/sqlite/crash.test.ts'), 'a second process')
  assert.ok(!isUnit('test/run.test.ts'), 'a whole run')
  assert.ok(allFiles().filter(isUnit).length > 100)
})

test('finds a process and a file that a run leaves behind, and kills the process', async () => {
  using traces = followTraces()
  const env = { ...process.env, ...traces.env }
  const child = spawn('sleep', ['3600'], { env, stdio: 'ignore' })
  const exited = once(child, 'exit')
  await once(child, 'spawn')
  writeFileSync(join(traces.env['TMPDIR']!, 'forgotten'), '')
  const [aProcess, aFile, ...others] = await traces.findLeftovers(0)
  assert.match(aProcess!, new RegExp(`^process ${child.pid}: sleep 3600`))
  assert.match(aFile!, /\/forgotten$/)
  assert.deepEqual(others, [])
  assert.deepEqual(await exited, [null, 'SIGKILL'])
})

test('kills and names a file that hangs, and runs the others', async () => {
  using folder = temporaryFolder()
  const write = (name: string, text: string) => {
    writeFileSync(join(folder.path, name), text)
    return join(folder.path, name)
  }
  const hangs = write('hangs.test.ts', `setInterval(() => {}, 1000)`)
  const passes = write('passes.test.ts', `import { test } from 'node:test'; test('it passes', () => {})`)
  const runner = write(
    'runner.ts',
    `import { runFiles } from '${fileURLToPath(new URL('run-files.ts', import.meta.url))}'
     const { isSuccess } = await runFiles(${JSON.stringify([hangs, passes])}, { env: process.env, silenceMsMax: 5000 })
     console.log('success', isSuccess)`,
  )
  const env = { ...process.env, NODE_TEST_CONTEXT: undefined }
  const child = spawn(process.execPath, [runner], { env, stdio: 'pipe' })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (more) => (text += more))
  await once(child, 'close')
  assert.match(text, new RegExp(`KILLED: ${hangs} hangs`))
  assert.match(text, /✔ it passes/)
  assert.match(text, /success false/)
})
