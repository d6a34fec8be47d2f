import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ScrapeError } from '../../core/errors.ts'
import type { RunDepth } from '../../fleet/autoscale.ts'
import { ProcessCrew, type ProcessCrewOptions, workerEnv } from './autoscale-processes.ts'

const RUN: RunDepth = { runId: 'r1', pending: 100, remaining: 100, isPaused: false }

function shellCrew(script: string, options: Partial<ProcessCrewOptions> = {}): ProcessCrew {
  return new ProcessCrew({
    command: ['/bin/sh', '-c', script],
    workerArgs: [],
    env: {},
    processesMax: 20,
    restMs: 0,
    drainMs: 60_000,
    graceMs: 0,
    onLine: () => {},
    ...options,
  })
}

const LASTING = 'trap "exit 4" TERM; while :; do sleep 0.01; done'
const to = (shares: Record<string, number>) => ({ shares: new Map(Object.entries(shares)) })
/** A look at the queue that is recent enough to cover every exit so far. */
const seen = (settled: number, runs: readonly RunDepth[] = [RUN]) => ({ runs, settled, atMs: Number.POSITIVE_INFINITY })

/** Waits until all workers, or all but `left`, have exited. */
async function empty(crew: ProcessCrew, left = 0): Promise<void> {
  while (crew.size > left) await new Promise((resolve) => setTimeout(resolve, 5))
}

test('replaces workers that die as long as pages get done, and gives up after ten deaths without progress', async () => {
  const crew = shellCrew('echo "out of luck" >&2; exit 7')
  for (let settled = 1; settled <= 6; settled++) {
    await crew.scale(to({ r1: 3 }))
    await empty(crew)
    crew.check(seen(settled))
  }
  const dieThreeTimes = async () => {
    await crew.scale(to({ r1: 3 }))
    await empty(crew)
    crew.check(seen(6))
  }
  await dieThreeTimes()
  await dieThreeTimes()
  await assert.rejects(dieThreeTimes, (error: ScrapeError) => {
    assert.equal(error.code, 'E_WORKERS_DIE')
    assert.match(error.message, /died 12 times in a row with nothing done \(exit code 7\)/)
    assert.match(error.details.notes?.join() ?? '', /out of luck/)
    return true
  })
})

test('does not count as a death when the run is over, or when the worker exited after the look', async () => {
  const crew = shellCrew('exit 1', { now: () => 100 })
  await crew.scale(to({ r1: 12 }))
  await empty(crew)
  crew.check({ ...seen(0), atMs: 99 }) // the run was open at the time of the look, but perhaps not when they exited
  crew.check(seen(0, []))
  crew.check(seen(0))
})

test('does not count workers that leave as deaths, and waits before it staffs their run again', async () => {
  for (const code of [0, 4]) {
    let nowMs = 0
    const crew = shellCrew(`exit ${code}`, { restMs: 1000, now: () => nowMs })
    await crew.scale(to({ r1: 12 }))
    await empty(crew)
    crew.check(seen(0))
    nowMs = 999
    assert.deepEqual(await crew.scale(to({ r1: 2 })), [])
    nowMs = 1000
    assert.equal((await crew.scale(to({ r1: 2 }))).length, 2)
    await empty(crew)
    crew.check(seen(0, [])) // the run was over after all; once it is reopened, it does not wait
    assert.equal((await crew.scale(to({ r1: 1 }))).length, 1)
    await empty(crew)
  }
})

test('fails as soon as one worker cannot start', async () => {
  const crew = shellCrew('exit 2')
  await crew.scale(to({ r1: 1 }))
  await empty(crew)
  assert.throws(() => crew.check(seen(0)), { code: 'E_WORKERS_DIE', message: /cannot begin \(exit code 2\)/ })
})

test('drains workers of paused and overstaffed runs first, and starts others only as far as there is room', async () => {
  const crew = shellCrew(LASTING, { processesMax: 4 })
  try {
    await crew.scale(to({ a: 3, b: 1 }))
    const done = await crew.scale(to({ a: 2, b: 0, c: 2 }))
    assert.deepEqual(done, ['drained worker 4 of a', 'drained worker 2 of b'])
    assert.deepEqual([crew.countOf('a'), crew.countOf('b'), crew.size], [2, 0, 4])
    await empty(crew, 2)
    assert.equal((await crew.scale(to({ a: 2, b: 0, c: 2 }))).length, 2)
    assert.deepEqual([crew.countOf('a'), crew.countOf('c')], [2, 2])
    assert.deepEqual(await crew.scale(to({ a: 2, b: 0, c: 2 })), [])
  } finally {
    await crew.dismiss()
  }
})

test('drains with SIGTERM, and kills workers that do not exit in time', async () => {
  const gentle = shellCrew(LASTING)
  await gentle.scale(to({ r1: 2 }))
  await gentle.dismiss()
  assert.equal(gentle.size, 0)

  const deaf = shellCrew('trap "" TERM; exec sleep 60', { drainMs: 100 })
  await deaf.scale(to({ r1: 1 }))
  await deaf.dismiss()
  assert.equal(deaf.size, 0)
})

test('passes all its connection URLs and paths on to its workers', () => {
  const places = { out: 'runs', frontier: 'amqp://q', store: 'sqlite:s', redis: 'redis://r', drainTimeout: 1000 }
  assert.deepEqual(workerEnv(places), {
    SLUICE_OUT: 'runs',
    SLUICE_FRONTIER: 'amqp://q',
    SLUICE_STORE: 'sqlite:s',
    SLUICE_REDIS: 'redis://r',
    SLUICE_DRAIN_TIMEOUT: '1000ms',
  })
})
