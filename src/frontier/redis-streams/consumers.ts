/** Removes consumers without pending messages: a fleet whose workers come and go must not leave thousands of them behind. */
import type { Link } from '../redis/link.ts'
import { BASE, GROUP } from '../redis/lua.ts'
import { script } from '../redis/script.ts'

/** A worker that has read nothing for this long is gone; if not, its next claim creates the consumer again. */
const IDLE_MS_MAX = 600_000

/** Number of workers that are leaving, their names. */
const TIDY = script(
  'streams-tidy',
  `${BASE}
local isGoing = {}
for i = 1, argNumber() do isGoing[arg()] = true end
for _, lane in ipairs(call('HKEYS', P .. 'lanes:pending')) do
  local stream = P .. 'tasks:' .. lane
  if call('EXISTS', stream) == 1 then
    for _, flat in ipairs(call('XINFO', 'CONSUMERS', stream, '${GROUP}')) do
      local consumer = {}
      for i = 1, #flat, 2 do consumer[flat[i]] = flat[i + 1] end
      local isGone = isGoing[consumer.name] or consumer.idle > ${IDLE_MS_MAX}
      if isGone and consumer.pending == 0 then call('XGROUP', 'DELCONSUMER', stream, '${GROUP}', consumer.name) end
    end
  end
end`,
)

export async function tidyConsumers(link: Link, going: readonly string[] = []): Promise<void> {
  await link.run(TIDY, { args: () => [going.length, ...going] })
}
