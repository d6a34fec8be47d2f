/** Pages per second over the last looks at a run, for code that polls it. */

const WINDOW_MS = 10_000

export interface RateMeter {
  /** The rate of a monotonic count; undefined at the first look, when there is nothing to compare with. */
  rate(count: number): number | undefined
}

export function createRateMeter(now: () => number = Date.now): RateMeter {
  const looks: { atMs: number; count: number }[] = []
  return {
    rate(count) {
      const atMs = now()
      looks.push({ atMs, count })
      // The oldest look kept is the last one that is at least a window old, so that the window is always full.
      while (looks.length > 2 && looks[1]!.atMs <= atMs - WINDOW_MS) looks.shift()
      const oldest = looks[0]!
      return atMs > oldest.atMs ? Math.max(0, (count - oldest.count) / ((atMs - oldest.atMs) / 1000)) : undefined
    },
  }
}
