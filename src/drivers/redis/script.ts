/** A Lua script by its name and hash, and the envelope that proves that a reply belongs to its call. */
import { hash } from 'node:crypto'

export type Arg = string | number | Buffer

export interface Script {
  readonly name: string
  readonly lua: string
  readonly sha: string
}

/**
 * The last argument of every call is its tag, which the script removes and puts before and after its reply. A stream that lost or
 * repeated some bytes returns replies of other calls, often of the right shape; the tag shows it. (Nil would end a Lua array.)
 */
export function script(name: string, body: string): Script {
  const lua = `local tag = table.remove(ARGV)
local function body()
${body}
end
local answer = body()
if type(answer) == 'table' and answer.err then return answer end
if answer == nil then answer = false end
return { tag, answer, tag }`
  return { name, lua, sha: hash('sha1', lua) }
}

/** The reply to the call with this tag; undefined if it belongs to another call or to none. */
export function opened(reply: unknown, tag: string): { answer: unknown } | undefined {
  if (!Array.isArray(reply) || reply.length !== 3) return undefined
  return String(reply[0]) === tag && String(reply[2]) === tag ? { answer: reply[1] } : undefined
}
