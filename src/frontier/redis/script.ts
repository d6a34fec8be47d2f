/** A Lua script by its name and hash. Re-exported for `rabbit/`: only folders named after Redis may import `drivers/redis`. */
export { type Arg, type Script, script } from '../../drivers/redis/script.ts'
