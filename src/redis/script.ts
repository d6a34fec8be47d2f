/** A Lua script by its name and hash, and the envelope that proves an answer belongs to its call. */
import { hash } from 'node:crypto'

export type Arg = string | number | Buffer

export interface Script {
  readonly name: string
  readonly lua: string
  readonly sha: string
}

/**
 * The last argument of every call is its tag, which the script takes off and puts before and after its answer. A stream that lost or
 * repeated some bytes on its way gives answers of other calls, often of the right shape: the tag tells. (Nil would end a Lua array.)
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

/** The answer to the call with this tag; undefined when the reply is one to something else, or to nothing. */
export function opened(reply: unknown, tag: string): { answer: unknown } | undefined {
  if (!Array.isArray(reply) || reply.length !== 3) return undefined
  return String(reply[0]) === tag && String(reply[2]) === tag ? { answer: reply[1] } : undefined
}
