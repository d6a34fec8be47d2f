/** JSON Lines: one item per line, as the pipeline wrote it. */
import type { LoggedItem } from '../core/item.ts'
import { LineSink } from './lines.ts'

export function createJsonlSink({ path, name = 'jsonl' }: { path: string; name?: string }): LineSink {
  return new LineSink({ name, path, begin: () => '', resume: () => undefined, encode: encodeJsonl })
}

function encodeJsonl(item: LoggedItem): string {
  return `${item.json}\n`
}
