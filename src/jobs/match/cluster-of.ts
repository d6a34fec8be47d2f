/** Groups postings into jobs: each is compared only with the few that share a key, or company and title, with it. */

import type { Posting, Source } from '../read/posting.ts'
import { type Comparable, comparePrepared, type Prepared, prepare } from './cluster.ts'

type Clusterable = Comparable & Pick<Posting, 'source' | 'board_token' | 'source_job_id'>

interface Cluster<P extends Clusterable = Clusterable> {
  members: P[]
  /** The posting to show: from the employer's own board, else from a page's markup, else from a big board. */
  preferred: P
  apply_url: string
  /** Clusters (by index in the result) that may be the same job. */
  possible: number[]
}

/** For a job on more boards than this, only the first ones are compared. */
const COMPARED_MAX = 20

const RANK: Partial<Record<Source, number>> = {
  jsonld: 1,
  linkedin: 2,
  indeed: 2,
  glassdoor: 2,
  ziprecruiter: 2,
  google: 2,
}
export const rankOf = ({ source }: Pick<Posting, 'source'>): number => RANK[source] ?? 0

interface Group<P> {
  members: { prepared: Prepared; posting: P }[]
  possible: Set<number>
}

/** Clusters in the order of their first members. Deterministic. */
export function clusterOf<P extends Clusterable>(postings: Iterable<P>): Cluster<P>[] {
  const groups: Group<P>[] = []
  /** Key → indexes of the groups that have a member with it. */
  const blocks = new Map<string, number[]>()
  for (const posting of postings) {
    const prepared = prepare(posting)
    const keys = blockKeys(prepared)
    const candidates = new Set(keys.flatMap((key) => blocks.get(key) ?? []))
    const at = join({ prepared, posting }, groups, [...candidates].slice(0, COMPARED_MAX))
    for (const key of keys) addTo(blocks, key, at)
  }
  return groups.map(toCluster)
}

/** Two postings can be the same job only if they share one of these. */
export function blockKeys({ posting, company, requisition, applyUrl, words }: Prepared): string[] {
  const keys = company === '' ? [] : [`title\n${company}\n${words().join(' ')}`, `hash\n${posting.job_hash}`]
  if (requisition !== null) keys.push(`requisition\n${requisition}`)
  if (applyUrl !== null) keys.push(`url\n${applyUrl}`)
  return keys
}

function addTo(blocks: Map<string, number[]>, key: string, group: number): void {
  const known = blocks.get(key)
  if (known === undefined) blocks.set(key, [group])
  else if (!known.includes(group) && known.length < COMPARED_MAX) known.push(group)
}

/** Joins the first group with a member that is the same job and none that is a different one; otherwise starts a new group. */
function join<P>(one: Group<P>['members'][number], groups: Group<P>[], candidates: readonly number[]): number {
  const possible = new Set<number>()
  for (const at of candidates) {
    const verdicts = groups[at]!.members.slice(0, COMPARED_MAX).map(
      (member) => comparePrepared(one.prepared, member.prepared).verdict,
    )
    // A posting for two cities must not merge the separate jobs of each city.
    if (verdicts.includes('same') && !verdicts.includes('different')) {
      groups[at]!.members.push(one)
      return at
    }
    if (verdicts.some((verdict) => verdict !== 'different')) possible.add(at)
  }
  groups.push({ members: [one], possible })
  for (const at of possible) groups[at]!.possible.add(groups.length - 1)
  return groups.length - 1
}

function toCluster<P extends Clusterable>({ members, possible }: Group<P>): Cluster<P> {
  const ordered = members.map(({ posting }) => posting).sort((a, b) => rankOf(a) - rankOf(b))
  const preferred = ordered[0]!
  const applied = ordered.find(({ apply_url }) => apply_url !== null)
  return {
    members: members.map(({ posting }) => posting),
    preferred,
    apply_url:
      preferred.apply_url ?? (rankOf(preferred) === 0 ? preferred.job_url : (applied?.apply_url ?? preferred.job_url)),
    possible: [...possible].sort((a, b) => a - b),
  }
}
