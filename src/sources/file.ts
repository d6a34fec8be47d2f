/** URLs from a file, one a line: any number of them, never held together. */

import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { ScrapeError } from '../core/errors.ts'
import type { FoundUrl } from './contract.ts'

/** Empty lines and those that begin with `#` are passed over. `-` is standard input. */
export async function* urlLines(path: string, signal?: AbortSignal): AsyncGenerator<FoundUrl> {
  const input = path === '-' ? process.stdin : createReadStream(path)
  const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })
  // Closed, the interface ends its loop: a race for every line would hold a million promises in the one that never settles.
  let failure: unknown
  const fail = (error: unknown) => {
    failure ??= error
    lines.close()
  }
  const onAbort = () => fail(signal!.reason) // somebody may be waiting for a line that never comes
  input.once('error', (cause: Error) => fail(unreadable(path, cause)))
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    let line = 0
    for await (const raw of lines) {
      line++
      const text = raw.trim().replace(/^\uFEFF/, '')
      if (text !== '' && !text.startsWith('#')) yield { text, from: `line ${line}` }
    }
  } catch (cause) {
    failure ??= unreadable(path, cause as Error)
  } finally {
    signal?.removeEventListener('abort', onAbort)
    input.destroy()
  }
  if (failure !== undefined) throw failure
}

function unreadable(path: string, cause: Error): ScrapeError {
  return new ScrapeError('E_USAGE', `${path} cannot be read: ${cause.message}`, {
    cause,
    fix: 'Name a file with one URL a line, or - for standard input.',
  })
}
