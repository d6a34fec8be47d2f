/** A run whose run.json is broken: commands that need it name the file, and those that list runs list the others. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { RunFolder } from '../src/runs/run-folder.ts'
import { startRecord } from '../src/runs/run-record.ts'
import { sluice, temporaryFolder } from './sluice.ts'

const BROKEN = { 'cut-off': '{"id": "x", "pa', empty: '', nothing: 'null', 'another-program': '[1, 2]' }

test('reports a broken run.json by the name of the file, and ps lists the other runs', async () => {
  using place = temporaryFolder()
  const out = place.path
  const whole = RunFolder.create(out, 'books', Date.now())
  const given = { previous: undefined, args: {}, source: 'books', frontier: 'sqlite:', nowMs: Date.now() }
  const record = startRecord({ ...given, runId: whole.runId, scraper: 'books' })
  whole.writeRecord({ ...record, state: 'stopped', reason: 'by hand', finishedAt: record.startedAt })
  for (const [id, text] of Object.entries(BROKEN)) {
    mkdirSync(join(out, 'broken', id), { recursive: true })
    writeFileSync(join(out, 'broken', id, 'run.json'), text)
  }
  const commands = Object.keys(BROKEN).map((id) => ['stats', id])
  for (const args of [...commands, ['dlq', 'list', 'empty']]) {
    const { code, stderr } = await sluice([...args, '--out', out])
    assert.equal(code, 2, `${args.join(' ')}: ${stderr}`)
    assert.match(stderr, new RegExp(`E_RUN_RECORD +\\S+/broken/${args.at(-1)}/run\\.json cannot be read`))
  }
  const { code, stdout, stderr } = await sluice(['ps', '--out', out])
  assert.equal(code, 0, stderr)
  assert.match(stdout, new RegExp(`${whole.runId} +books +stopped`))
  for (const id of Object.keys(BROKEN)) assert.match(stdout, new RegExp(`^${id} .*run\\.json cannot be read`, 'm'))
})
