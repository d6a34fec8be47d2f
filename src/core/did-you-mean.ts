/** "Did you mean …": the known word closest to a mistyped one. */

/**
 * Number of edits (insert, delete, replace, swap of neighbours) between two words. Words are short, so a simple algorithm will
 * do.
 */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1
      let best = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + cost)
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (isSwap) best = Math.min(best, beforeLast[j - 2]! + 1)
      row.push(best)
    }
    beforeLast = last
    last = row
  }
  return last[b.length]!
}

const WORD_LENGTH_MAX = 100

/** The candidate that was most likely meant, or undefined if none is close: a wild guess does not help. */
export function didYouMean(word: string, candidates: Iterable<string>): string | undefined {
  const typed = word.toLowerCase().slice(0, WORD_LENGTH_MAX)
  let best: string | undefined
  let bestDistance = Math.max(1, Math.floor(typed.length * 0.4)) + 1
  for (const candidate of candidates) {
    const known = candidate.toLowerCase()
    // Half a word probably means the whole word.
    const distance = typed.length >= 3 && known.startsWith(typed) ? 0.5 : editDistance(typed, known)
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}
