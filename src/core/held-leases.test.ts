import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEventBus, type RunEvent } from './events.ts'
import { HeldLeases } from './held-leases.ts'

const leaseOf = (token: string, id = 'a') => ({ token, task: { id, url: `https://shop.example/${id}` } })

function bookOf(lost: () => ReturnType<typeof leaseOf>[]) {
  const bus = createEventBus()
  const events: RunEvent[] = []
  bus.on((event) => events.push(event))
  const extended: string[][] = []
  const frontier = {
    async extend(leases: readonly ReturnType<typeof leaseOf>[]) {
      extended.push(leases.map(({ token }) => token))
      return { lost: lost() }
    },
  }
  return { held: new HeldLeases({ frontier, bus, leaseMs: 1000 }), events, extended }
}

test('drops a lost lease, but keeps the same task under a new token', async () => {
  const [old, anew] = [leaseOf('1'), leaseOf('2')]
  const { held, events } = bookOf(() => [leaseOf('1')])
  held.add(old)
  held.add(anew)
  assert.deepEqual([...(await held.extend())], [old])
  assert.equal(held.size, 1)
  assert.deepEqual(events, [{ type: 'lease.lost', url: old.task.url, count: 1 }])
})

test('does not count a lease as lost once its commit has begun or it is settled', async () => {
  const [committing, settled] = [leaseOf('1'), leaseOf('2', 'b')]
  const { held, events } = bookOf(() => {
    held.committing(committing)
    held.settled(settled)
    return [committing, settled]
  })
  held.add(committing)
  held.add(settled)
  assert.equal((await held.extend()).size, 0)
  assert.equal(held.size, 1)
  assert.deepEqual(events, [])
})

test('makes no request while it holds nothing', async () => {
  const { held, extended } = bookOf(() => [])
  assert.equal((await held.extend()).size, 0)
  held.add(leaseOf('1'))
  await held.extend()
  assert.deepEqual(extended, [['1']])
})
