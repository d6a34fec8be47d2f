/** Small values of a run, and whether it is paused. Scripts, not plain commands, because scripts check that the run still exists. */
import type { Link } from './link.ts'
import { BASE } from './lua.ts'
import { script } from './script.ts'

const GET_META = script('meta-get', `${BASE} return call('HGET', P .. 'meta', arg())`)
const SET_META = script('meta-set', `${BASE} return call('HSET', P .. 'meta', arg(), arg())`)
const PAUSE = script('pause', `${BASE} return call('HSET', P .. 'totals', 'pause', arg())`)
const RESUME = script('resume', `${BASE} return call('HDEL', P .. 'totals', 'pause')`)

export async function getMeta(link: Link, name: string): Promise<string | undefined> {
  return (await link.run<string | null>(GET_META, { args: () => [name] })) ?? undefined
}

export async function setMeta(link: Link, name: string, value: string): Promise<void> {
  await link.run(SET_META, { args: () => [name, value] })
}

export async function setPause(link: Link, reason: string | undefined): Promise<void> {
  await (reason === undefined ? link.run(RESUME, {}) : link.run(PAUSE, { args: () => [reason] }))
}
