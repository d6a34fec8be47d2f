/** A Lua script by its name and hash. */
import { hash } from 'node:crypto'

export type Arg = string | number | Buffer

export interface Script {
  readonly name: string
  readonly lua: string
  readonly sha: string
}

export function script(name: string, lua: string): Script {
  return { name, lua, sha: hash('sha1', lua) }
}
