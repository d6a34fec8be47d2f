/** URLs from a file, one a line: any number of them, never held together. */

import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { ScrapeError } from '../core/errors.ts'
import type { FoundUrl } from './contract.ts'

/** Empty lines and those that begin with `#` are passed over. `-` is standard input. */
export async function* urlLines(path: string, signal?: AbortSignal): AsyncGenerator<FoundUrl> {
  const input = path === '-' ? process.stdin : createReadStream(path)
  const failed = Promise.withResolvers<never>()
  failed.promise.catch(() => {})
  input.once('error', (cause: Error) =>
    failed.reject(
      new ScrapeError('E_USAGE', `${path} cannot be read: ${cause.message}`, {
        cause,
        fix: 'Name a file with one URL a line, or - for standard input.',
      }),
    ),
  )
  const onAbort = () => failed.reject(signal!.reason) // somebody may be waiting for a line that never comes
  signal?.addEventListener('abort', onAbort, { once: true })
  const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })[Symbol.asyncIterator]()
  try {
    for (let line = 1; ; line++) {
      const next = await Promise.race([lines.next(), failed.promise])
      if (next.done) return
      const text = next.value.trim().replace(/^\uFEFF/, '')
      if (text !== '' && !text.startsWith('#')) yield { text, from: `line ${line}` }
    }
  } finally {
    signal?.removeEventListener('abort', onAbort)
    input.destroy()
  }
}
