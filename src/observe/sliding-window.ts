/** Sums over the last seconds, in constant memory: one slot per second, the oldest overwritten. */

interface SlidingWindow {
  add(nowMs: number, pages: number, bytes: number, added: number): void
  read(nowMs: number): WindowSums
}

interface WindowSums {
  pages: number
  bytes: number
  /** Tasks added to the frontier. */
  added: number
  /** The time these sums cover. */
  spanMs: number
}

const SLOT_MS = 1000

export function createSlidingWindow(windowMs: number): SlidingWindow {
  const slots = Math.ceil(windowMs / SLOT_MS) + 1 // one extra, because the current slot is not full yet
  const pages = new Float64Array(slots)
  const bytes = new Float64Array(slots)
  const added = new Float64Array(slots)
  let head = Number.NEGATIVE_INFINITY
  let firstMs = Number.NaN

  /** Empties the slots between the last event and now. */
  function advance(nowMs: number): number {
    const tick = Math.floor(nowMs / SLOT_MS)
    if (tick > head) {
      const from = Math.max(head + 1, tick - slots + 1)
      for (let t = from; t <= tick; t++) {
        const i = t % slots
        pages[i] = 0
        bytes[i] = 0
        added[i] = 0
      }
      head = tick
    }
    return head % slots
  }

  return {
    add(nowMs, addPages, addBytes, addAdded) {
      if (Number.isNaN(firstMs)) firstMs = nowMs
      const i = advance(nowMs)
      pages[i]! += addPages
      bytes[i]! += addBytes
      added[i]! += addAdded
    },
    read(nowMs) {
      advance(nowMs)
      const sum = (values: Float64Array) => values.reduce((total, value) => total + value, 0)
      const coveredMs = nowMs - (head - slots + 1) * SLOT_MS
      // A young run has not filled the window yet; below a second the quotient would be noise.
      const spanMs = Number.isNaN(firstMs) ? 0 : Math.max(SLOT_MS, Math.min(coveredMs, nowMs - firstMs))
      return { pages: sum(pages), bytes: sum(bytes), added: sum(added), spanMs }
    },
  }
}
