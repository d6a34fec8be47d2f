/**
 * How much work something is, for tests of inputs designed to be slow. Measures the CPU time of this thread, not elapsed time,
 * relative to a reference in the same process: neither a busy machine nor a slow one changes the result.
 */

/** CPU time of `reference` on the machine where the limits were chosen. */
const REFERENCE_MS = 15
const ROUNDS = 7

let factor: number | undefined

/** In milliseconds of that machine. */
export function cpuMs(work: () => unknown): number {
  factor ??= REFERENCE_MS / Math.min(...Array.from({ length: ROUNDS }, () => spentMs(reference)))
  return spentMs(work) * factor
}

function spentMs(work: () => unknown): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

/** Searches text, adds numbers, creates objects: what parsers do. */
function reference(): number {
  let sum = 0
  for (let i = 0; i < 60_000; i++) {
    const text = `<p class="${i}">${i}</p>`
    sum += text.indexOf('>') + text.replace(/\d+/g, 'x').length + Object.keys({ text, i }).length
  }
  return sum
}
