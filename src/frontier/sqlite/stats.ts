/** Stats from maintained counters. */
import type { FrontierStats } from '../contract.ts'
import type { Counters } from './counters.ts'
import type { Database } from './database.ts'
import type { Ledger } from './ledger.ts'

const HOSTS_MAX = 50

/** Up to this many queues, all are summed; beyond that, only the hosts of the largest queues. */
const QUEUES_SUMMED_MAX = 2000

/** Name, pending, claimed. */
type CountRow = [string, number, number]

export function createStats({ db, ledger, counters }: { db: Database; ledger: Ledger; counters: Counters }) {
  const lanes = db.prepareRows<CountRow>('select name, pending, claimed from lane')
  const queueCount = db.prepareRows<[number]>('select coalesce(max(id), 0) from queue')
  const sums = (condition: string) => `
    select q.host, sum(q.pending), sum(coalesce(i.claimed, 0)) from queue q
    left join (select queue, count(*) as claimed from inflight group by queue) i on i.queue = q.id
    ${condition} group by q.host having sum(q.pending) + sum(coalesce(i.claimed, 0)) > 0 order by 2 desc, 1 limit ${HOSTS_MAX}`
  const allHosts = db.prepareRows<CountRow>(sums(''))
  // With a hundred thousand hosts a full sum takes 24 ms, this 0.1 ms: the largest by order of magnitude, then any ready ones.
  const largestHosts = db.prepareRows<CountRow>(
    sums(`where q.host in (
      select host from (select host from queue where size > 0 order by size desc limit ${QUEUES_SUMMED_MAX / 4})
      union select host from (select host from queue where turn is not null limit ${HOSTS_MAX}))`),
  )

  return function stats(): FrontierStats {
    ledger.load()
    const { pending, claimed, completed, failed, dead, seen, items, pause_reason } = ledger.totals
    const [queues] = queueCount.get()!
    const hosts = (queues <= QUEUES_SUMMED_MAX ? allHosts : largestHosts).all()
    const laneRows = lanes.all()
    return {
      pending,
      claimed,
      completed,
      failed,
      dead,
      remaining: pending + claimed,
      seen,
      items,
      counts: counters.sums(),
      isPaused: pause_reason !== null,
      pauseReason: pause_reason ?? undefined,
      lanes: Object.fromEntries(laneRows.map(([name, waiting, out]) => [name, { pending: waiting, claimed: out }])),
      hosts: hosts.map(([host, waiting, out]) => ({ host, pending: waiting, claimed: out })),
    }
  }
}
