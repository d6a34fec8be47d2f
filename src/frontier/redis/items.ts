/** The item log: a list whose first entry follows the last confirmed one, so that a number gives the position. */
import type { ItemRow, LoggedItem } from '../../core/item.ts'
import type { ItemLog, SinkPositions } from '../contract.ts'
import type { Link } from './link.ts'
import { BASE } from './lua.ts'
import { script } from './script.ts'

/** After, max. Returns the number of the first line, and the lines. */
const READ = script(
  'items-read',
  `${BASE}
local gone = total('items') - call('LLEN', P .. 'items')
local from = math.max(argNumber() - gone, 0)
return { gone + from + 1, call('LRANGE', P .. 'items', from, from + argNumber() - 1) }`,
)

const CONFIRM = script(
  'items-confirm',
  `${BASE}
local seq, positions = argNumber(), arg()
if seq < total('confirmed') then return 0 end -- a reader that was replaced must not set the sinks back
seq = math.min(seq, total('items'))
local gone = total('items') - call('LLEN', P .. 'items')
call('LTRIM', P .. 'items', seq - gone, -1)
call('HSET', P .. 'totals', 'confirmed', seq)
call('SET', P .. 'sinks', positions)
return 1`,
)

const CONFIRMED = script('items-confirmed', `${BASE} return { total('confirmed'), call('GET', P .. 'sinks') or '{}' }`)

/** `length:key json`: avoids quoting JSON again. */
export function logLine({ key, json }: ItemRow): string {
  return `${key.length}:${key}${json}`
}

function logged(line: string, seq: number): LoggedItem {
  const colon = line.indexOf(':')
  const end = colon + 1 + Number(line.slice(0, colon))
  return { seq, key: line.slice(colon + 1, end), json: line.slice(end) }
}

export function createItems(link: Link): ItemLog {
  return {
    async read({ afterSeq, max }) {
      if (max < 1) return []
      const [first, lines] = await link.run<[number, string[]]>(READ, { args: () => [afterSeq, max] })
      return lines.map((line, i) => logged(line, first + i))
    },

    async confirm(seq, positions) {
      await link.run(CONFIRM, { args: () => [seq, JSON.stringify(positions)] })
    },

    async confirmed() {
      const [seq, positions] = await link.run<[number, string]>(CONFIRMED, {})
      return { seq, positions: JSON.parse(positions) as SinkPositions }
    },
  }
}
