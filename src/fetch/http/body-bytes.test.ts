import assert from 'node:assert/strict'
import { it } from 'node:test'
import { BodyBytes } from './body-bytes.ts'

const MB = 1_048_576

for (const [what, sizes, expected] of [
  ['nothing', [], 0],
  ['one piece', [1000], 1000],
  ['small pieces', [1000, 1, 65_536], 0],
  ['a large body of known length', [1000, ...Array<number>(40).fill(65_536)], 1000 + 40 * 65_536],
  ['a large body of unknown length', [1000, ...Array<number>(100).fill(65_536)], 0],
  ['more than was announced', Array<number>(40).fill(65_536), 1.5 * MB],
  ['one piece larger than all growth', [MB, 8 * MB, 1], 0],
] as const) {
  it(`returns a body as it arrived: ${what}`, () => {
    const body = new BodyBytes()
    const pieces = sizes.map((size, i) => Buffer.alloc(size, i + 1))
    for (const piece of pieces) body.add(piece, expected)
    assert.equal(body.length, Buffer.concat(pieces).length)
    assert.ok(body.take().equals(Buffer.concat(pieces)))
    assert.equal(body.take().length, 0, 'it is not held any longer')
  })
}

it('copies the chunks of a large body, so that none of them has to be kept', () => {
  const body = new BodyBytes()
  const pieces = Array.from({ length: 20 }, () => Buffer.alloc(65_536, 1))
  for (const piece of pieces) {
    body.add(piece, 0)
    if (body.length > MB) for (const old of pieces) old.fill(0)
  }
  assert.equal(
    body
      .take()
      .subarray(0, 17 * 65_536)
      .indexOf(0),
    -1,
  )
})
