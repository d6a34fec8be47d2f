/** URLs from a file, one per line: any number of them, never all in memory. */

import { createReadStream } from 'node:fs'
import type { Readable } from 'node:stream'
import { type ErrorRecord, ScrapeError, toErrorRecord } from '../core/errors.ts'
import { URL_BYTES_MAX } from '../core/url.ts'
import type { FoundUrl } from './contract.ts'

/** Skips empty lines and lines that begin with `#`; a line too long for a URL is returned as invalid. `-`: standard input. */
export async function* urlLines(path: string, signal?: AbortSignal): AsyncGenerator<FoundUrl> {
  const input: Readable = path === '-' ? process.stdin : createReadStream(path)
  let failure: unknown
  const onAbort = () => {
    failure ??= signal!.reason
    input.destroy() // a read may be waiting for a line that never comes
  }
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    signal?.throwIfAborted()
    let line = 0
    for await (const lines of linesOf(input)) {
      for (const { text, isCut } of lines) {
        line++
        if (text === '' || text.startsWith('#')) continue
        yield { text, from: `line ${line}`, isNamed: false, ...(isCut ? { error: TOO_LONG } : {}) }
        if (failure !== undefined) throw failure
      }
    }
  } catch (cause) {
    failure ??= unreadable(path, cause as Error)
  } finally {
    signal?.removeEventListener('abort', onAbort)
    input.destroy()
  }
  if (failure !== undefined) throw failure
}

const TOO_LONG: ErrorRecord = toErrorRecord(
  new ScrapeError('E_URL_INVALID', `a line longer than a URL may be (${URL_BYTES_MAX} characters)`),
)

interface Line {
  /** Without surrounding white space; only the beginning if it is too long. */
  text: string
  isCut: boolean
}

/** As many lines as arrive at once. Not `readline`: it buffers lines of any length, and a string of 512 MiB ends the process. */
async function* linesOf(input: AsyncIterable<Uint8Array>): AsyncGenerator<Line[]> {
  const decoder = new TextDecoder()
  let rest = ''
  let isAfterReturn = false
  for await (const chunk of input) {
    let text = decoder.decode(chunk, { stream: true })
    if (isAfterReturn && text.startsWith('\n')) text = text.slice(1) // the second half of a \r\n
    if (text === '') continue
    isAfterReturn = text.endsWith('\r')
    const lines = (rest + text).split(/\r\n|\r|\n/)
    // Keep one character more than a URL may have: enough to see that the line is too long.
    rest = lines
      .pop()!
      .trimStart()
      .slice(0, URL_BYTES_MAX + 1)
    yield lines.map(toLine)
  }
  yield [toLine(rest + decoder.decode())]
}

function toLine(raw: string): Line {
  const text = raw.trim().replace(/^\uFEFF/, '')
  return { text: text.slice(0, URL_BYTES_MAX), isCut: text.length > URL_BYTES_MAX }
}

function unreadable(path: string, cause: Error): ScrapeError {
  return new ScrapeError('E_USAGE', `${path} cannot be read: ${cause.message}`, {
    cause,
    fix: 'Name a file with one URL a line, or - for standard input.',
  })
}
