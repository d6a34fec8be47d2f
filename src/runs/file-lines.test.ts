/** Lines of a file and their positions, even if a read ends in the middle of a line. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { temporaryFolder } from '../../test/sluice.ts'
import { isLineStart, linesOf, placedLinesOf, wholeLines } from './file-lines.ts'

const all = async <T>(batches: AsyncIterable<T[]>) => (await Array.fromAsync(batches)).flat()

it('gives each line the position where the next one begins', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'items.jsonl')
  const lines = Array.from({ length: 500 }, (_, i) => `${i} ${'é東'.repeat(i * 7)}`) // more than one read from disk
  lines[3] = ''
  lines[200] = 'x'.repeat(600_000)
  writeFileSync(path, `${lines.join('\n')}\nhalf a line`)
  const end = await wholeLines(path)
  assert.deepEqual(await all(linesOf(path, 0, end)), lines)
  const placed = await all(placedLinesOf(path, 0, end))
  assert.deepEqual(
    placed.map(({ text }) => text),
    lines,
  )
  assert.equal(placed.at(-1)!.end, end)
  for (const at of [0, 3, 199, 200, 498]) {
    const rest = await all(placedLinesOf(path, placed[at]!.end, end))
    assert.deepEqual(rest[0], placed[at + 1])
    assert.ok(await isLineStart(path, placed[at]!.end))
  }
  assert.ok(!(await isLineStart(path, placed[7]!.end - 1)), 'at a line end')
  assert.ok(!(await isLineStart(path, end + 1_000_000)), 'behind the file')
})
