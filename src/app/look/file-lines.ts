/** Whole lines of a file that may still be growing, in bounded memory. */
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'

const CHUNK_BYTES = 256 * 1024

/** Length of a file up to its last line end. */
export async function wholeLines(path: string): Promise<number> {
  await using file = await open(path, 'r')
  const buffer = Buffer.alloc(CHUNK_BYTES)
  for (let { size: end } = await file.stat(); end > 0; ) {
    const start = Math.max(0, end - CHUNK_BYTES)
    const { bytesRead } = await file.read(buffer, 0, end - start, start)
    const at = buffer.subarray(0, bytesRead).lastIndexOf(0x0a)
    if (at !== -1) return start + at + 1
    end = start
  }
  return 0
}

/** Whole lines from byte `start` to byte `end`, some hundred at a time. */
export async function* linesOf(path: string, start: number, end: number): AsyncGenerator<string[]> {
  if (end <= start) return
  let rest: Buffer[] = []
  for await (const chunk of createReadStream(path, {
    start,
    end: end - 1,
    highWaterMark: CHUNK_BYTES,
  }) as AsyncIterable<Buffer>) {
    const last = chunk.lastIndexOf(0x0a)
    if (last === -1) {
      rest.push(chunk)
      continue
    }
    yield Buffer.concat([...rest, chunk.subarray(0, last)])
      .toString('utf8')
      .split('\n')
    rest = last + 1 < chunk.length ? [chunk.subarray(last + 1)] : []
  }
}
