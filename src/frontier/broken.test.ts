/** The suite must reject engines that break a promise: each one here is the `memory:` engine with one fault. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addCounts, noCounts } from '../core/counts.ts'
import type { NewTask } from '../core/task.ts'
import { frontierChecks } from './conformance.ts'
import type { Frontier, Lease } from './contract.ts'
import { openMemoryFrontier } from './memory/engine.ts'

type Fault = (inner: Frontier, now: () => number) => Partial<Frontier>

/** The checks that an engine with this fault fails; if `expected` is given, only the checks it matches are run. */
async function refusals(fault: Fault, expected?: RegExp): Promise<string[]> {
  const open = async ({ now }: { now: () => number }): Promise<Frontier> => {
    const inner = openMemoryFrontier({ now })
    return { ...methodsOf(inner), ...fault(inner, now) }
  }
  const failed: string[] = []
  for (const { title, needs, run } of frontierChecks) {
    if (needs !== undefined || (expected !== undefined && !expected.test(title))) continue
    await run(open).catch(() => failed.push(title))
  }
  return failed
}

function methodsOf(inner: Frontier): Frontier {
  const { engine, can, dead, items } = inner
  const names = [
    'add',
    'claim',
    'extend',
    'commit',
    'sweep',
    'stats',
    'nextDueMs',
    'pause',
    'resume',
    'getMeta',
    'setMeta',
  ] as const
  const methods = Object.fromEntries(names.map((name) => [name, (inner[name] as () => unknown).bind(inner)]))
  const dispose = () => inner[Symbol.asyncDispose]()
  return { engine, can, dead, items, ...methods, [Symbol.asyncDispose]: dispose } as unknown as Frontier
}

const faults: { name: string; refusedBy: RegExp; fault: Fault }[] = [
  {
    name: 'that forgets what it has seen',
    refusedBy: /^adds a task once/,
    fault: (inner) => {
      let n = 0
      return {
        add: async (tasks) => {
          const again: NewTask[] = []
          for await (const task of tasks) again.push({ ...task, key: `${task.key ?? task.url} ${++n}` })
          return inner.add(again)
        },
      }
    },
  },
  {
    name: 'that gives one task to two workers',
    refusedBy: /^gives each task to one worker only/,
    fault: (inner) => {
      let given: Promise<Lease[]> | undefined
      return {
        claim: (request) => {
          given ??= inner.claim(request)
          return given
        },
      }
    },
  },
  {
    name: 'that does not fence: the id of a task settles whatever lease is out',
    refusedBy: /^tells two leases of one worker on one task apart/,
    fault: (inner) => {
      const current = new Map<string, Lease>()
      return {
        claim: async (request) => {
          const leases = await inner.claim(request)
          for (const lease of leases) current.set(lease.task.id, lease)
          return leases
        },
        commit: (outcomes) =>
          inner.commit(outcomes.map((outcome) => ({ ...outcome, lease: current.get(outcome.lease.task.id)! }))),
      }
    },
  },
  {
    name: 'that counts what stale outcomes bring',
    refusedBy: /^counts nothing of a stale outcome/,
    fault: (inner) => {
      const sums = noCounts()
      return {
        commit: (outcomes) => {
          for (const { counts } of outcomes) addCounts(sums, counts)
          return inner.commit(outcomes)
        },
        stats: async () => ({ ...(await inner.stats()), counts: sums }),
      }
    },
  },
  {
    name: 'that fences outcomes but not heartbeats',
    refusedBy: /^tells two leases of one worker on one task apart/,
    fault: (inner) => ({ extend: async (leases, leaseMs) => ({ ...(await inner.extend(leases, leaseMs)), lost: [] }) }),
  },
  {
    name: 'that counts a postponement as a try',
    refusedBy: /^counts a retry as a try/,
    fault: (inner) => ({
      commit: (outcomes) =>
        inner.commit(
          outcomes.map((outcome) =>
            outcome.kind === 'postpone'
              ? {
                  ...outcome,
                  kind: 'retry',
                  error: { code: 'E_SERVER', class: 'server-error', message: outcome.reason },
                }
              : outcome,
          ),
        ),
    }),
  },
  {
    name: 'that ignores notBeforeMs',
    refusedBy: /^gives nothing before its time/,
    fault: (inner) => ({
      add: async (tasks) => {
        const now: NewTask[] = []
        for await (const task of tasks) now.push({ ...task, notBeforeMs: 0 })
        return inner.add(now)
      },
    }),
  },
  {
    name: 'that retries at once',
    refusedBy: /^brings a retried or postponed task back at its time/,
    fault: (inner) => ({
      commit: (outcomes) => inner.commit(outcomes.map((o) => (o.kind === 'retry' ? { ...o, atMs: 0 } : o))),
    }),
  },
  {
    name: 'that loses items when another page of the commit is retried',
    refusedBy: /^keeps the items of a commit in which other pages fail/,
    fault: (inner) => ({
      commit: (outcomes) => {
        const hasRetry = outcomes.some(({ kind }) => kind === 'retry')
        return inner.commit(outcomes.map((o) => (o.kind === 'done' && hasRetry ? { ...o, items: [] } : o)))
      },
    }),
  },
  {
    name: 'that adds the tasks of a stale outcome',
    refusedBy: /^drops an outcome of a lost lease with its tasks and items/,
    fault: (inner) => ({
      commit: async (outcomes) => {
        const committed = await inner.commit(outcomes)
        for (const outcome of outcomes) {
          const isStale = committed.stale.includes(outcome.lease)
          if (outcome.kind === 'done' && isStale) await inner.add(outcome.tasks ?? [])
        }
        return committed
      },
    }),
  },
  {
    name: 'whose sweep forgets losses',
    refusedBy: /^returns a lease when it has run out/,
    fault: (inner) => ({
      claim: async (request) => (await inner.claim(request)).map((lease) => ({ ...lease, losses: 0 })),
    }),
  },
  {
    name: 'whose sweep buries batch mates at the first loss',
    refusedBy: /^lets the batch mates of a poisonous task live/,
    fault: (inner) => ({ sweep: (options) => inner.sweep({ ...options, lossesMax: 0 }) }),
  },
  {
    name: 'whose sweep takes leases that still run',
    refusedBy: /^returns a lease when it has run out/,
    fault: (inner) => ({ sweep: (options) => inner.sweep({ ...options, workerIds: 'all' }) }),
  },
  {
    name: 'that gives a suspect to a worker with full hands',
    refusedBy: /^gives a suspect to a worker with empty hands/,
    fault: (inner) => {
      let n = 0
      return { claim: (request) => inner.claim({ ...request, workerId: `${request.workerId} ${++n}` }) }
    },
  },
  {
    name: 'that serves the first host until it is empty',
    refusedBy: /^lets no host wait|^deals the tasks of one priority/,
    fault: (inner) => {
      const hosts: string[] = []
      return {
        add: async (tasks) => {
          const all: NewTask[] = []
          for await (const task of tasks) all.push(task)
          hosts.push(...all.map(({ url }) => new URL(url).host))
          return inner.add(all)
        },
        claim: async (request) => {
          const avoidHosts = [...new Set(hosts)].slice(1)
          const first = await inner.claim({ ...request, avoidHosts })
          return first.length > 0 ? first : inner.claim(request)
        },
      }
    },
  },
  {
    name: 'that ignores the hosts to avoid',
    refusedBy: /^leaves the hosts that a worker avoids/,
    fault: (inner) => ({ claim: ({ avoidHosts: _, ...request }) => inner.claim(request) }),
  },
  {
    name: 'that ignores priorities',
    refusedBy: /^gives the higher priority first/,
    fault: (inner) => ({
      add: async (tasks) => {
        const all: NewTask[] = []
        for await (const task of tasks) all.push({ ...task, priority: 0 })
        return inner.add(all)
      },
    }),
  },
  {
    name: 'that claims while paused',
    refusedBy: /^gives nothing while paused/,
    fault: () => ({ pause: async () => {} }),
  },
  {
    name: 'whose revived dead letters keep their old tries',
    refusedBy: /^brings dead letters back with fresh tries/,
    fault: (inner) => {
      const tries = new Map<string, number>()
      return {
        dead: {
          ...inner.dead,
          retry: async (filter) => {
            for (const letter of await inner.dead.list(filter)) tries.set(letter.task.id, letter.attempts)
            return inner.dead.retry(filter)
          },
        },
        claim: async (request) =>
          (await inner.claim(request)).map((lease) => ({
            ...lease,
            attempt: lease.attempt + (tries.get(lease.task.id) ?? 0),
          })),
      }
    },
  },
  {
    name: 'that declares to tell how old its tasks are, and does not',
    refusedBy: /^tells how long the oldest task/,
    fault: (inner) => ({ stats: async () => ({ ...(await inner.stats()), oldestAgeMs: undefined }) }),
  },
  {
    name: 'that tells how old its tasks are and does not declare it',
    refusedBy: /^tells how long the oldest task/,
    fault: (inner) => ({ can: { ...inner.can, tellsAge: false } }),
  },
  {
    name: 'that counts claimed tasks among those that wait',
    refusedBy: /^tells how long the oldest task/,
    fault: (inner, now) => {
      let firstAtMs: number | undefined
      return {
        add: (tasks) => {
          firstAtMs ??= now()
          return inner.add(tasks)
        },
        stats: async () => ({ ...(await inner.stats()), oldestAgeMs: firstAtMs && now() - firstAtMs }),
      }
    },
  },
  {
    name: 'that reads its whole source before it adds the first task',
    refusedBy: /^takes any number of tasks/,
    fault: (inner) => ({
      add: async (tasks) => {
        const all: NewTask[] = []
        for await (const task of tasks) all.push(task)
        return inner.add(all)
      },
    }),
  },
  {
    name: 'that uses the numbers of confirmed items again',
    refusedBy: /^still knows a confirmed item/,
    fault: (inner) => ({
      items: {
        ...inner.items,
        read: async (options) => {
          const { seq } = await inner.items.confirmed()
          const items = await inner.items.read({ ...options, afterSeq: options.afterSeq + seq })
          return items.map((item) => ({ ...item, seq: item.seq - seq }))
        },
      },
    }),
  },
  {
    name: 'whose confirmation goes backwards',
    refusedBy: /^does not let a reader that was replaced set the sinks back/,
    fault: (inner) => {
      let last = { seq: 0, positions: {} }
      return {
        items: {
          ...inner.items,
          confirm: async (seq, positions) => {
            last = { seq, positions }
            await inner.items.confirm(seq, positions)
          },
          confirmed: async () => last,
        },
      }
    },
  },
]

for (const { name, refusedBy, fault } of faults) {
  test(`the suite refuses an engine ${name}`, async () => {
    assert.notDeepEqual(await refusals(fault, refusedBy), [])
  })
}

test('the random history alone finds a fault that shows only in the stats', async () => {
  const miscount: Fault = (inner) => ({
    stats: async () => {
      const stats = await inner.stats()
      return stats.dead > 0 ? { ...stats, completed: stats.completed + 1 } : stats
    },
  })
  assert.deepEqual(await refusals(miscount, /random history/), [
    'agrees with the model after every step of a random history',
  ])
})

test('the suite accepts the same engine without a fault', async () => {
  assert.deepEqual(await refusals(() => ({})), [])
})
