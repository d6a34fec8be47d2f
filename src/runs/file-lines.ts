/** Reads whole lines of a file that may still be growing, in bounded memory. */
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'

const CHUNK_BYTES = 256 * 1024

/** Length of a file up to its last newline. */
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

/** Whole lines from byte `start` to byte `end`, a few hundred at a time. */
export async function* linesOf(path: string, start: number, end: number): AsyncGenerator<string[]> {
  for await (const { bytes } of blocksOf(path, start, end)) yield bytes.toString('utf8').split('\n')
}

interface PlacedText {
  text: string
  /** The byte after its newline, where the next line begins. */
  end: number
}

/** The same, each with its position. */
export async function* placedLinesOf(path: string, start: number, end: number): AsyncGenerator<PlacedText[]> {
  for await (const { bytes, at } of blocksOf(path, start, end)) {
    const lines: PlacedText[] = []
    for (let from = 0; from <= bytes.length; ) {
      const found = bytes.indexOf(0x0a, from)
      const to = found === -1 ? bytes.length : found
      lines.push({ text: bytes.toString('utf8', from, to), end: at + to + 1 })
      from = to + 1
    }
    yield lines
  }
}

/** Whether a line begins at this byte. */
export async function isLineStart(path: string, at: number): Promise<boolean> {
  if (at === 0) return true
  await using file = await open(path, 'r')
  const { bytesRead, buffer } = await file.read(Buffer.alloc(1), 0, 1, at - 1)
  return bytesRead === 1 && buffer[0] === 0x0a
}

/** Blocks of whole lines as read from disk, without the last newline, and the byte they begin at. */
async function* blocksOf(path: string, start: number, end: number): AsyncGenerator<{ bytes: Buffer; at: number }> {
  if (end <= start) return
  let rest: Buffer[] = []
  let at = start
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
    const bytes = Buffer.concat([...rest, chunk.subarray(0, last)])
    yield { bytes, at }
    at += bytes.length + 1
    rest = last + 1 < chunk.length ? [chunk.subarray(last + 1)] : []
  }
}
