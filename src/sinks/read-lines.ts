/**
 * The lines of a file, a few hundred at a time, in bounded memory. Not node:readline, which also ends a line at U+2028, which
 * JSON text may contain.
 */
import { createReadStream } from 'node:fs'

const CHUNK_BYTES = 256 * 1024

export async function* readLines(path: string): AsyncGenerator<string[]> {
  let rest: Buffer[] = []
  for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES }) as AsyncIterable<Buffer>) {
    const end = chunk.lastIndexOf(0x0a)
    if (end === -1) {
      rest.push(chunk)
      continue
    }
    const text = Buffer.concat([...rest, chunk.subarray(0, end)]).toString('utf8')
    rest = end + 1 < chunk.length ? [chunk.subarray(end + 1)] : []
    yield text.split('\n')
  }
  if (rest.length > 0) yield [Buffer.concat(rest).toString('utf8')]
}
