/** Runs the bundled shop's scraper and reads what it leaves in its folder. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunRecord } from '../src/core/run.ts'
import { type BooksSite, startBooksSite } from './site/books.ts'

/** Arguments for a run at full speed. */
export const booksRun = (site: BooksSite, out: string, ...more: string[]): string[] => [
  'run',
  'books',
  '--site',
  site.url,
  '--rps',
  '0',
  '--out',
  out,
  ...more,
]

export type Item = Record<string, unknown>

export const DETAILS = ['--arg', 'details=true']

export function itemsIn(out: string, scraper = 'books'): Item[] {
  return readFileSync(join(out, scraper, 'latest', 'items.jsonl'), 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
}

export function recordIn(out: string, scraper = 'books'): RunRecord {
  return JSON.parse(readFileSync(join(out, scraper, 'latest', 'run.json'), 'utf8'))
}

export interface HeldBooksSite extends BooksSite {
  /** From now on it answers at once. */
  letGo(): void
}

/** A shop that is slow from this request on: however busy the machine is, a run against it does not end before `letGo`. */
export async function startHeldBooksSite(options: { products: number; fromRequest: number }): Promise<HeldBooksSite> {
  let isHeld = true
  const delayMs = () => (isHeld && site.stats().requests > options.fromRequest ? 2000 : 0)
  const site: BooksSite = await startBooksSite({ products: options.products, delayMs })
  const letGo = () => {
    isHeld = false
  }
  return { ...site, letGo }
}
