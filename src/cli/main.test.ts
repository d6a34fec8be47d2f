import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { startSluice } from '../../test/sluice.ts'

test('whoever stops reading our output gets no stack', async () => {
  const { child, result } = startSluice(['help'])
  child.stdout!.destroy() // as `| head` does, before the first line is there
  const { code, stderr } = await result
  assert.equal(code, 0, stderr)
  assert.equal(stderr, '')
})

test('commands only print through the functions that mask secrets', () => {
  // What they write themselves: data as it is, cursor movements, a counter that is redrawn.
  const allowed = ['output.ts', 'export.ts', 'fetch.ts', 'watch-screen.ts', 'bench.ts', 'shell.ts']
  const folder = new URL('.', import.meta.url)
  const files = readdirSync(folder).filter((name) => /(?<!\.test)\.ts$/.test(name) && !allowed.includes(name))
  const others = files.filter((name) =>
    /std(?:out|err)\.write\(|console\./.test(readFileSync(new URL(name, folder), 'utf8')),
  )
  assert.deepEqual(others, [])
})
