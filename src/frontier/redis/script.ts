/** A Lua script by its name and hash, for the scripts of the frontier. */
export { type Arg, type Script, script } from '../../redis/script.ts'
