/** Opens a frontier by its URL. The engine's code is loaded only when its scheme is asked for. */
import { ScrapeError } from '../core/errors.ts'
import type { Frontier, FrontierOptions } from './contract.ts'

type Open = (url: string, options: FrontierOptions) => Promise<Frontier>

const ENGINES: Record<string, Open> = {
  memory: async (_url, options) => (await import('./memory.ts')).openMemoryFrontier(options),
  sqlite: async (url, options) => (await import('./sqlite/engine.ts')).openSqliteFrontier(pathOf(url), options),
}

const COMING = ['postgres', 'postgresql', 'amqp', 'amqps', 'redis', 'rediss']

/** `memory:` or `sqlite:path` (`sqlite:///absolute/path` too). */
export async function openFrontier(url: string, options: FrontierOptions = {}): Promise<Frontier> {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase()
  const open = scheme === undefined ? undefined : ENGINES[scheme]
  if (open !== undefined) return open(url, options)
  const known = Object.keys(ENGINES).map((name) => `${name}:`)
  const what = scheme === undefined ? 'a frontier is named by a URL' : `no frontier engine for ${scheme}:`
  const isComing = scheme !== undefined && COMING.includes(scheme)
  throw new ScrapeError('E_OPTION', isComing ? `the ${scheme}: frontier is not built yet` : what, {
    notes: [`known: ${known.join(' ')}`, 'to come: postgres: amqp: redis:'],
    fix: 'Use sqlite:PATH for a durable run on one machine, or memory: for a try.',
  })
}

function pathOf(url: string): string {
  const path = url.slice('sqlite:'.length).replace(/^\/\//, '')
  if (path !== '') return path
  throw new ScrapeError('E_OPTION', 'sqlite: needs a path', { fix: 'For example sqlite:runs/books/frontier.db' })
}
