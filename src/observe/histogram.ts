/** Quantiles in constant memory: counts in buckets that grow by 4.4 %, so an answer is within 2.2 % of the true one. */

const PER_OCTAVE = 16
const MS_MIN = 0.1
/** 0.1 ms … 1 h; values outside are counted in the first or last bucket. */
const BUCKETS = Math.ceil(Math.log2(3_600_000 / MS_MIN) * PER_OCTAVE) + 1

interface Histogram {
  add(ms: number): void
  /** 0 if nothing was added. */
  quantile(q: number): number
  readonly count: number
}

export function createHistogram(): Histogram {
  const counts = new Float64Array(BUCKETS)
  let count = 0
  return {
    add(ms) {
      const index = ms <= MS_MIN ? 0 : Math.floor(Math.log2(ms / MS_MIN) * PER_OCTAVE)
      counts[index < BUCKETS ? index : BUCKETS - 1]! += 1
      count += 1
    },
    quantile(q) {
      if (count === 0) return 0
      const rank = Math.max(1, Math.ceil(q * count))
      let seen = 0
      for (let i = 0; i < BUCKETS; i++) {
        seen += counts[i]!
        if (seen >= rank) return MS_MIN * 2 ** ((i + 0.5) / PER_OCTAVE)
      }
      return MS_MIN * 2 ** (BUCKETS / PER_OCTAVE)
    },
    get count() {
      return count
    },
  }
}
