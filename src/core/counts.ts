/**
 * Named counters of a run, kept by its frontier. The counts of an outcome are added in the transaction that settles it, so the
 * sums are exact across processes and workers, no matter how often one was killed. Names are `group.name`.
 */
export type Counts = Readonly<Record<string, number>>

/** Sums without a prototype: a counter may have any name, even `constructor`. */
export type CountSums = Record<string, number>

export function noCounts(): CountSums {
  return Object.create(null) as CountSums
}

export function addCounts(sums: CountSums, counts: Counts | undefined): void {
  for (const name in counts) sums[name] = (sums[name] ?? 0) + counts[name]!
}

interface TryEnd {
  outcome: string
  bytes?: number
  error?: { code: string }
  suspicion?: string
}

/** The counts of one try at a page or a file: how it ended, how many bytes it received, and the error it was given up for. */
export function countsOfTry(group: 'pages' | 'files', { outcome, bytes = 0, error, suspicion }: TryEnd): CountSums {
  const counts = noCounts()
  counts[`${group}.${outcome}`] = 1
  if (bytes > 0 && outcome !== 'same') counts[`${group}.bytes`] = bytes
  if (suspicion !== undefined) counts[`${group}.suspect`] = 1
  if (outcome === 'failed' && error !== undefined) counts[`errors.${error.code}`] = 1
  return counts
}

/** The counters of one group, by the rest of their name: `countsOf(counts, 'filled')` → `[['title', 3]]`. */
export function countsOf(counts: Counts, group: string): [name: string, count: number][] {
  const prefix = `${group}.`
  return Object.keys(counts)
    .filter((name) => name.startsWith(prefix))
    .map((name) => [name.slice(prefix.length), counts[name]!])
}
