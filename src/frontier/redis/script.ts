/** A Lua script by its name and hash. Given on for the scripts of `rabbit/`: only what is named redis may use `src/redis`. */
export { type Arg, type Script, script } from '../../drivers/redis/script.ts'
