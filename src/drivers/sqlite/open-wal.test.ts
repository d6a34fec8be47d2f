import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

test('processes that open a new file in the same moment all get it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-wal-'))
  const children = Array.from({ length: 4 }, () =>
    fork(new URL('./open-wal.test-child.ts', import.meta.url), { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] }),
  )
  try {
    await Promise.all(children.map((child) => new Promise((resolve) => child.once('message', resolve))))
    for (let i = 0; i < 25; i++) {
      const answers = children.map(
        (child) =>
          new Promise((resolve) => {
            child.once('message', resolve)
            child.once('exit', (code) => resolve(`exit ${code}`))
          }),
      )
      for (const child of children) child.send(join(folder, `${i}.db`))
      assert.deepEqual(await Promise.all(answers), ['open', 'open', 'open', 'open'])
    }
  } finally {
    for (const child of children) child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
})
