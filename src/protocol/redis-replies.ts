/** Replies of Redis to stream commands, in one format. */

export type RawEntry = [id: string, fields: string[] | null]

/** In RESP3 a map of streams comes as a flat list of names and entries, in RESP2 as a list of pairs. */
export function entriesByStream(reply: unknown): [stream: string, entries: RawEntry[]][] {
  const list = (reply ?? []) as unknown[]
  if (typeof list[0] !== 'string') return list as [string, RawEntry[]][]
  return Array.from({ length: list.length / 2 }, (_, i) => [String(list[i * 2]), list[i * 2 + 1] as RawEntry[]])
}

/** The field `message` of an entry. */
export function messageOf(fields: readonly string[] | null): string | undefined {
  const at = (fields ?? []).findIndex((name, i) => i % 2 === 0 && name === 'message')
  return at < 0 ? undefined : fields![at + 1]
}
