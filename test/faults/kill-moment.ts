/** When to kill: counted in pages instead of time, so that a fast machine gets as many kills as a slow one. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { BooksSite } from '../site/books.ts'

/** Resolves a few pages later, or once one of `ends` has; sometimes at once, which may hit a process that is only starting. */
export async function killMoment(site: BooksSite, pagesMax: number, ends: Promise<unknown>[]): Promise<void> {
  if (Math.random() < 0.15) return void (await Promise.race([sleep(Math.random() * 400), ...ends]))
  const at = site.stats().requests + 1 + Math.random() * (pagesMax - 1)
  let hasEnded = false
  const ended = Promise.race(ends).then(() => {
    hasEnded = true
  })
  while (!hasEnded && site.stats().requests < at) await Promise.race([sleep(5), ended])
}
