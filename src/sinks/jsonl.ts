/** JSON Lines: one item per line, as produced by the pipeline. */
import { LineSink } from './lines.ts'

export function createJsonlSink({ path, name = 'jsonl' }: { path: string; name?: string }): LineSink {
  return new LineSink({
    name,
    path,
    lineEnd: '\n',
    begin: () => '',
    resume: () => undefined,
    encode: (item) => item.json,
  })
}
