/** The arithmetic of capacity planning: against sums calculated manually, and against what must hold whatever the figures. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { ENGINES, MEASURED, planFor } from './capacity-model.ts'

const FILE = fileURLToPath(new URL('./capacity.ts', import.meta.url))
const run = (...args: string[]) => promisify(execFile)(process.execPath, [FILE, ...args])

test('plans a billion pages in thirty days like a manual calculation', () => {
  const plan = planFor('postgres', { pages: 1e9, days: 30, utilisation: 0.5, pendingShare: 0.2, itemsPerPage: 1 })
  assert.equal(Math.round(plan.pagesPerS), 772) // 1e9 / 2,592,000 s, in half of the time
  assert.equal(plan.hostsAtOnce, 772)
  assert.equal(plan.workers, 7) // 772 × 0.5 s in flight, 64 in each
  assert.equal(plan.workerCores.toFixed(2), '0.32')
  assert.equal(Math.round(plan.diskBytes / 1e9), 1178) // 0.2 × 358 + 414 + 400 + 292 bytes each
  assert.equal(plan.networkBytes, 2e13)
  assert.equal(plan.connections, 56)
})

test('needs more workers for slow pages, and more CPU for fast ones', () => {
  const quick = planFor('postgres', { pages: 1e9, days: 1, latencyMs: 1 })
  assert.equal(quick.workers, Math.ceil((1e9 / 86_400 / 0.5) * 0.00042 * (1 / 0.7)))
  const slow = planFor('postgres', { pages: 1e9, days: 1, latencyMs: 5000 })
  assert.equal(slow.workers, Math.ceil(((1e9 / 86_400 / 0.5) * 5) / 64))
})

test('gives Redis runs of the measured size', () => {
  assert.equal(planFor('redis', { pages: 1e9 }).runs, 125)
  assert.equal(planFor('redis', { pages: 1e6 }).runs, 1)
  const { serverMemoryBytes } = planFor('redis', { pages: 1e6, pendingShare: 1 })
  assert.equal(serverMemoryBytes, 1e6 * (256 + 23))
})

test('names a part that would be used beyond what was measured', () => {
  const plan = planFor('amqp', { pages: 1e9, days: 1 })
  assert.ok(
    plan.limits.some((limit) => limit.startsWith('queue at 445 %')),
    String(plan.limits),
  )
  assert.deepEqual(planFor('postgres', { pages: 1e6 }).limits, [])
})

test('never needs less of anything for twice the pages, on any engine', () => {
  for (const engine of ENGINES) {
    let before = planFor(engine, { pages: 1e5 })
    for (let pages = 2e5; pages <= 1e10; pages *= 2) {
      const plan = planFor(engine, { pages })
      for (const name of ['workers', 'diskBytes', 'serverMemoryBytes', 'networkBytes', 'costPerMonth', 'runs'] as const)
        assert.ok(plan[name] >= before[name], `${engine} ${name} at ${pages}`)
      before = plan
    }
  }
})

test('counts bytes once, and machines per month', () => {
  const prices = { pages: 1e8, pricePerGbNetwork: 0, pricePerGbDisk: 0, pricePerGbMemory: 0 }
  const month = planFor('sqlite', { ...prices, days: 30, pricePerCore: 10 })
  assert.equal(month.costPerMonth.toFixed(3), (10 * Math.max(month.workerCores, 0.1 * month.workers)).toFixed(3))
  const free = { ...prices, pricePerCore: 0, pricePerGbNetwork: 1 }
  assert.equal(planFor('sqlite', { ...free, days: 60 }).costPerMonth, 1000) // 2,000 GB in two months
  assert.ok(MEASURED.workerBytes > 0)
})

test("the tables in the docs match the command's output", async () => {
  const page = readFileSync(new URL('../docs/capacity.md', import.meta.url), 'utf8')
  for (const pages of ['1e6', '1e7', '1e8', '1e9']) {
    const { stdout } = await run('--pages', pages)
    assert.ok(page.includes(`\`\`\`text\n${stdout}\`\`\`\n`), `docs/capacity.md has another table for ${pages}`)
  }
})

test('prints a column for each engine, and rejects anything but numbers', async () => {
  const { stdout } = await run('--pages', '1e6', '--days', '1')
  assert.match(stdout, /^ +memory +sqlite +postgres +amqp +redis/)
  assert.match(stdout, /^pages\/s +23 +23/m)
  await assert.rejects(run('--pages', 'many'), /--pages many is no number/)
})
