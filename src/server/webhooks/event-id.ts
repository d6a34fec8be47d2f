/** Event ids: version 7 UUIDs, which sort by time; those of one process also within a millisecond. */
import { randomBytes } from 'node:crypto'

let lastMs = 0
let count = 0

export function newEventId(nowMs: number): string {
  count = nowMs === lastMs ? count + 1 : 0
  lastMs = nowMs
  const bytes = randomBytes(16)
  bytes.writeUIntBE(nowMs, 0, 6)
  bytes.writeUInt16BE(0x7000 | ((count >> 6) & 0xfff), 6) // 18 bits of counter: 262,144 per millisecond
  bytes.writeUInt8(0x80 | (count & 0x3f), 8)
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
