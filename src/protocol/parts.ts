/** Splits large results into several messages: every program that handles a stream entry holds it in memory as a whole. */
import type { ResultMessage } from './messages.ts'

/** Approximate maximum size of a message, unless a single item is larger. */
export const PART_BYTES = 1_000_000
/** A larger item is left out and reported in `error`. Below the limit of readers. */
const ITEM_BYTES_MAX = 4_000_000

type List = 'jobs_data' | 'items'

/** The JSON of each message, at least one. */
export function resultTexts(result: ResultMessage, partBytes = PART_BYTES): string[] {
  const list: List = result.jobs_data.length > 0 ? 'jobs_data' : 'items'
  const entries = result[list].map((item, i) => ({ text: JSON.stringify(item), key: result.item_keys[i] }))
  const fitting = entries.filter(({ text }) => Buffer.byteLength(text) <= ITEM_BYTES_MAX)
  const head: ResultMessage = { ...result, jobs_data: [], items: [], item_keys: [] }
  if (fitting.length < entries.length) {
    const left = `${entries.length - fitting.length} items over ${ITEM_BYTES_MAX} bytes are left out`
    head.error = head.error === null ? left : `${head.error}; ${left}`
    if (head.status === 'success') head.status = 'partial'
  }
  const { [list]: _, ...rest } = head
  const groups = grouped(fitting, partBytes)
  return groups.map((group, i) => {
    const part = groups.length === 1 ? {} : { part: { number: i + 1, of: groups.length } }
    const item_keys = list === 'items' ? group.flatMap(({ key }) => key ?? []) : []
    const json = JSON.stringify({ ...rest, ...part, item_keys })
    return `${json.slice(0, -1)},"${list}":[${group.map(({ text }) => text).join(',')}]}` // serializes no item twice
  })
}

function grouped<T extends { text: string }>(entries: readonly T[], partBytes: number): T[][] {
  const groups: T[][] = [[]]
  let bytes = 0
  for (const entry of entries) {
    const own = Buffer.byteLength(entry.text)
    if (bytes > 0 && bytes + own > partBytes) {
      groups.push([])
      bytes = 0
    }
    groups.at(-1)!.push(entry)
    bytes += own
  }
  return groups
}
