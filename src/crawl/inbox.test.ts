import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Lease } from '../frontier/contract.ts'
import { Inbox } from './inbox.ts'

/** `a1` is the task https://a/1. */
function lease(name: string): Lease {
  const url = `https://${name[0]}/${name.slice(1)}`
  return {
    task: { id: name, url, route: 'page', data: null, depth: 0, priority: 0, lane: 'bulk', session: undefined },
    token: name,
    attempt: 1,
    losses: 0,
  }
}

function inboxOf(names: string): Inbox {
  const inbox = new Inbox()
  inbox.add(names.split(' ').map(lease))
  return inbox
}

const ids = (leases: Lease[]) => leases.map(({ task }) => task.id).join(' ')
const FREE = () => 0

/** Takes until nothing is left. */
function takeAll(inbox: Inbox, waitMs: (host: string) => number = FREE): string {
  const taken: Lease[] = []
  for (;;) {
    const next = inbox.take(waitMs)
    if (next.lease === undefined) return ids(taken)
    taken.push(next.lease)
  }
}

describe('Inbox', () => {
  it('serves the hosts in rotation, each in its own order', () => {
    assert.equal(takeAll(inboxOf('a1 a2 a3 b1 b2 c1')), 'a1 b1 c1 a2 b2 a3')
  })

  it('puts later tasks behind waiting ones', () => {
    const inbox = inboxOf('a1 b1')
    assert.equal(ids([inbox.take(FREE).lease!]), 'a1')
    inbox.add([lease('a2'), lease('b2')])
    assert.equal(takeAll(inbox), 'b1 a2 b2')
  })

  it('passes over a host that must wait and comes back to it', () => {
    const inbox = inboxOf('a1 a2 b1')
    assert.equal(
      takeAll(inbox, (host) => (host === 'a' ? 50 : 0)),
      'b1',
    )
    assert.equal(takeAll(inbox), 'a1 a2')
  })

  it('reports how long the soonest host must wait', () => {
    const waits: Record<string, number> = { a: 500, b: 20, c: Number.POSITIVE_INFINITY }
    const inbox = inboxOf('a1 b1 c1')
    assert.deepEqual(
      inbox.take((host) => waits[host]!),
      { lease: undefined, waitMs: 20 },
    )
    assert.equal(inbox.size, 3)
  })

  it('reports no time if it is empty or no host has one', () => {
    const never = { lease: undefined, waitMs: Number.POSITIVE_INFINITY }
    assert.deepEqual(new Inbox().take(FREE), never)
    assert.deepEqual(
      inboxOf('a1').take(() => Number.POSITIVE_INFINITY),
      never,
    )
  })

  it('checks each host once, and none after the first that is free', () => {
    const asked: string[] = []
    inboxOf('a1 a2 b1 c1').take((host) => {
      asked.push(host)
      return host === 'b' ? 0 : 9
    })
    assert.deepEqual(asked, ['a', 'b'])
  })

  it('removes the wanted tasks and keeps the order of the rest', () => {
    const inbox = inboxOf('a1 a2 a3 b1 b2')
    assert.equal(ids(inbox.remove(({ task }) => /[13]$/.test(task.id))), 'a1 a3 b1')
    assert.equal(inbox.size, 2)
    assert.equal(takeAll(inbox), 'a2 b2')
  })

  it('removes tasks by host', () => {
    const inbox = inboxOf('a1 b1 a2')
    assert.equal(ids(inbox.remove((_, host) => host === 'a')), 'a1 a2')
    assert.equal(takeAll(inbox), 'b1')
  })

  it('counts its tasks', () => {
    const inbox = inboxOf('a1 a2 b1')
    assert.equal(inbox.size, 3)
    inbox.take(FREE)
    assert.equal(inbox.size, 2)
    inbox.remove(() => true)
    assert.equal(inbox.size, 0)
    assert.equal(takeAll(inbox), '')
  })

  it('names the hosts with enough tasks, and forgets those with none', () => {
    const inbox = inboxOf('a1 a2 a3 b1 b2 c1')
    assert.deepEqual(inbox.hosts(2), ['a', 'b'])
    assert.deepEqual(inbox.hosts(1), ['a', 'b', 'c'])
    inbox.remove((_, host) => host !== 'c')
    assert.deepEqual(inbox.hosts(1), ['c'])
    inbox.take(FREE)
    assert.deepEqual(inbox.hosts(1), [])
  })

  it('lets manual tasks overtake, but gives one turn in eight to the others', () => {
    const inbox = inboxOf('a1 a2 a3')
    const manual = Array.from({ length: 16 }, (_, i) => {
      const one = lease(`b${i + 1}`)
      return { ...one, task: { ...one.task, lane: 'manual' } }
    })
    inbox.add(manual)
    assert.equal(takeAll(inbox), 'b1 b2 b3 b4 b5 b6 b7 a1 b8 b9 b10 b11 b12 b13 b14 a2 b15 b16 a3')
  })

  it('lets pages that need no browser pass those that wait for one', () => {
    const inbox = new Inbox(({ task }) => task.id.endsWith('b'))
    inbox.add(['a1b', 'a2', 'a3b', 'a4'].map(lease))
    const isFull = (_: string, needsBrowser: boolean) => (needsBrowser ? Number.POSITIVE_INFINITY : 0)
    assert.equal(ids([inbox.take(isFull).lease!, inbox.take(isFull).lease!]), 'a2 a4')
    assert.deepEqual(inbox.take(isFull), { lease: undefined, waitMs: Number.POSITIVE_INFINITY })
    assert.deepEqual(inbox.hosts(2), ['a'])
    assert.equal(takeAll(inbox), 'a1b a3b')
  })

  it('distinguishes hosts with different ports', () => {
    const inbox = new Inbox()
    const at = (host: string) => ({ ...lease('a1'), task: { ...lease('a1').task, url: `https://${host}/` } })
    inbox.add([at('a:1'), at('a:2'), at('a')])
    assert.deepEqual(inbox.hosts(1), ['a:1', 'a:2', 'a'])
  })
})
