import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { cpuMs } from '../../test/cpu-time.ts'
import { measureResources, openResourceMonitor, type ResourceMonitor } from './resources.ts'

const MIB = 2 ** 20
const GIB = 2 ** 30
const UNLIMITED_V1 = '9223372036854771712'

type Files = Record<string, string>

/** A machine with four cores and 8 GiB, 6 of them free; `busy` is the part of 4,000 ticks, `cores` says which cores had it. */
const machine = (busy = 0, cores = [0, 1, 2, 3]): Files => ({
  'proc/stat': [
    `cpu  ${busy} 0 0 ${4000 - busy} 0 0 0 0 0 0`,
    ...[0, 1, 2, 3].map((id) => {
      const share = cores.includes(id) ? busy / cores.length : 0
      return `cpu${id} ${share} 0 0 ${1000 - share} 0 0 0 0 0 0`
    }),
    'intr 1 2 3',
  ].join('\n'),
  'proc/meminfo': 'MemTotal:       8388608 kB\nMemFree:        1048576 kB\nMemAvailable:   6291456 kB\n',
})

const EMPTY: Files = { 'proc/stat': 'cpu  0 0 0 0 0 0 0 0\ncpu0 0 0 0 0\ncpu1 0 0 0 0\ncpu2 0 0 0 0\ncpu3 0 0 0 0\n' }

const groupV2 = (
  path: string,
  { max = 'max 100000', usedUs = 0, memory = 'max', current = 0, inactive = 0 },
): Files => ({
  [`sys/fs/cgroup${path}/cpu.max`]: `${max}\n`,
  [`sys/fs/cgroup${path}/cpu.stat`]: `usage_usec ${usedUs}\nuser_usec 1\n`,
  [`sys/fs/cgroup${path}/memory.max`]: `${memory}\n`,
  [`sys/fs/cgroup${path}/memory.current`]: `${current}\n`,
  [`sys/fs/cgroup${path}/memory.stat`]: `anon 1\nfile 2\ninactive_anon 5\ninactive_file ${inactive}\n`,
})

interface FakeMachine extends Disposable {
  write(...files: Files[]): void
  open(options?: { sampleMs?: number }): ResourceMonitor
  /** One second later. */
  later(monitor: ResourceMonitor, ...files: Files[]): ReturnType<ResourceMonitor['sample']>
}

function fake(...files: Files[]): FakeMachine {
  const root = mkdtempSync(join(tmpdir(), 'sluice-resources-'))
  let nowMs = 0
  const write = (...all: Files[]) => {
    for (const [name, text] of all.flatMap((one) => Object.entries(one))) {
      mkdirSync(dirname(join(root, name)), { recursive: true })
      writeFileSync(join(root, name), text)
    }
  }
  write(machine(), EMPTY, ...files)
  return {
    write,
    open: (options) => openResourceMonitor({ sampleMs: 3_600_000, disk: root, root, now: () => nowMs, ...options }),
    later: (monitor, ...changed) => {
      write(...changed)
      nowMs += 1000
      return monitor.sample()
    },
    [Symbol.dispose]: () => rmSync(root, { recursive: true }),
  }
}

const near = (actual: number, expected: number) =>
  assert.ok(Math.abs(actual - expected) < 1e-9, `${actual}, not ${expected}`)

test('uses the machine’s CPU time and memory without control groups', () => {
  using tree = fake()
  using monitor = tree.open()
  assert.deepEqual(monitor.snapshot().cpu, { usage: 0, smoothed: 0, limitCores: 4 })
  assert.equal(monitor.snapshot().spanMs, 0)
  const { cpu, memory, disk, spanMs } = tree.later(monitor, machine(1000))
  assert.deepEqual(cpu, { usage: 0.25, smoothed: 0.25, limitCores: 4 })
  assert.deepEqual(memory, { usedBytes: 2 * GIB, freeBytes: 6 * GIB, limitBytes: 8 * GIB, usage: 0.25, of: 'machine' })
  assert.equal(spanMs, 1000)
  assert.ok(disk!.totalBytes >= disk!.freeBytes && disk!.freeBytes > 0)
})

test('counts time stolen by a hypervisor as used, but not time waiting for a disk', () => {
  using tree = fake()
  using monitor = tree.open()
  const { cpu } = tree.later(monitor, { 'proc/stat': 'cpu  100 50 50 300 400 25 25 50 0 0\n' })
  near(cpu.usage, 0.3)
})

test('counts only the cores this process may run on', () => {
  using tree = fake({ 'proc/self/status': 'Name:\tnode\nCpus_allowed:\tc\nCpus_allowed_list:\t2-3\n' })
  using monitor = tree.open()
  assert.equal(monitor.snapshot().cpu.limitCores, 2)
  near(tree.later(monitor, machine(1000, [2])).cpu.usage, 0.5)
})

test('accepts a container’s own numbering of cores', () => {
  using tree = fake({ 'proc/self/status': 'Cpus_allowed_list:\t40,42-43\n' })
  using monitor = tree.open()
  assert.equal(monitor.snapshot().cpu.limitCores, 4)
  near(tree.later(monitor, machine(1000)).cpu.usage, 0.25)
})

test('shows one busy core as 50 % under a v2 quota of two, whatever the machine has', () => {
  const group = (usedUs: number) => groupV2('/app', { max: '200000 100000', usedUs })
  using tree = fake({ 'proc/self/cgroup': '0::/app\n' }, group(5_000_000))
  using monitor = tree.open()
  const { cpu } = tree.later(monitor, machine(1000), group(6_000_000))
  assert.deepEqual(cpu, { usage: 0.5, smoothed: 0.5, limitCores: 2 })
})

test('gives a busy machine precedence over a quota that is hardly used', () => {
  const group = (usedUs: number) => groupV2('/app', { max: '200000 100000', usedUs })
  using tree = fake({ 'proc/self/cgroup': '0::/app\n' }, group(0))
  using monitor = tree.open()
  near(tree.later(monitor, machine(3600), group(100_000)).cpu.usage, 0.9)
})

test('omits unused file pages from v2 memory, and uses the limit at which processes are slowed down', () => {
  const group = groupV2('/app', { memory: `${2 * GIB}`, current: 1536 * MIB, inactive: 512 * MIB })
  using tree = fake({ 'proc/self/cgroup': '0::/app\n' }, group)
  using monitor = tree.open()
  assert.deepEqual(monitor.snapshot().memory, {
    usedBytes: GIB,
    freeBytes: GIB,
    limitBytes: 2 * GIB,
    usage: 0.5,
    of: 'group',
  })
  using slowed = fake({ 'proc/self/cgroup': '0::/app\n', 'sys/fs/cgroup/app/memory.high': `${GIB}\n` }, group)
  using other = slowed.open()
  assert.equal(other.snapshot().memory.freeBytes, 0)
})

test('uses the tightest limit of nested groups, separately for CPU and memory', () => {
  const groups = (inner: number, outer: number) => [
    groupV2('/pods/a/main', { usedUs: inner, memory: `${GIB}`, current: 100 * MIB }),
    groupV2('/pods/a', { max: '100000 100000', usedUs: outer, memory: `${2 * GIB}`, current: 1900 * MIB }),
    groupV2('/pods', { max: '400000 100000', usedUs: outer }),
  ]
  using tree = fake({ 'proc/self/cgroup': '0::/pods/a/main\n' }, ...groups(0, 0))
  using monitor = tree.open()
  const { cpu, memory } = tree.later(monitor, machine(400), ...groups(1000, 750_000))
  assert.deepEqual(cpu, { usage: 0.75, smoothed: 0.75, limitCores: 1 })
  assert.equal(memory.freeBytes, 148 * MIB)
  assert.equal(memory.of, 'group')
})

test('ignores "max" and limits beyond the machine', () => {
  const group = groupV2('/app', { memory: `${16 * GIB}`, current: 15 * GIB })
  using tree = fake({ 'proc/self/cgroup': '0::/app\n' }, group, groupV2('', { usedUs: 9 }))
  using monitor = tree.open()
  const { cpu, memory } = tree.later(monitor, machine(2000))
  assert.deepEqual(cpu, { usage: 0.5, smoothed: 0.5, limitCores: 4 })
  assert.equal(memory.of, 'machine')
})

const groupV1 = (cpu: string, memory: string, usedNs: number, { quota = '150000', limit = `${GIB}` } = {}): Files => ({
  [`sys/fs/cgroup/cpu${cpu}/cpu.cfs_quota_us`]: `${quota}\n`,
  [`sys/fs/cgroup/cpu${cpu}/cpu.cfs_period_us`]: '100000\n',
  [`sys/fs/cgroup/cpuacct${cpu}/cpuacct.usage`]: `${usedNs}\n`,
  [`sys/fs/cgroup/memory${memory}/memory.limit_in_bytes`]: `${limit}\n`,
  [`sys/fs/cgroup/memory${memory}/memory.usage_in_bytes`]: `${800 * MIB}\n`,
  [`sys/fs/cgroup/memory${memory}/memory.stat`]: `cache 1\ninactive_file 7\ntotal_inactive_file ${32 * MIB}\n`,
})

test('reads the files of v1, and its value for no limit', () => {
  const own = { 'proc/self/cgroup': '5:memory:/app\n4:cpu,cpuacct:/app\n1:name=systemd:/\n0::/\n' }
  using tree = fake(own, groupV1('/app', '/app', 0))
  using monitor = tree.open()
  const { cpu, memory } = tree.later(monitor, machine(40), groupV1('/app', '/app', 1.2e9))
  assert.equal(cpu.limitCores, 1.5)
  near(cpu.usage, 0.8)
  assert.equal(memory.usedBytes, 768 * MIB)
  assert.equal(memory.limitBytes, GIB)

  using free = fake(own, groupV1('/app', '/app', 0, { quota: '-1', limit: UNLIMITED_V1 }))
  using other = free.open()
  const seen = free.later(other, machine(400))
  assert.equal(seen.cpu.limitCores, 4)
  near(seen.cpu.usage, 0.1)
  assert.equal(seen.memory.of, 'machine')
})

test('finds the groups the container sees by a path that only the host knows', () => {
  using v1 = fake({ 'proc/self/cgroup': '5:memory:/docker/3f2a\n4:cpu,cpuacct:/docker/3f2a\n' }, groupV1('', '', 0))
  using monitor = v1.open()
  assert.equal(monitor.snapshot().cpu.limitCores, 1.5)
  assert.equal(monitor.snapshot().memory.of, 'group')
  using v2 = fake({ 'proc/self/cgroup': '0::/../../other\n' }, groupV2('', { max: '50000 100000' }))
  using other = v2.open()
  assert.equal(other.snapshot().cpu.limitCores, 0.5)
})

test('applies a limit that is changed at run time from the next sample on', () => {
  using tree = fake({ 'proc/self/cgroup': '0::/app\n' }, groupV2('/app', {}))
  using monitor = tree.open()
  assert.equal(monitor.snapshot().memory.of, 'machine')
  const smaller = groupV2('/app', { max: '100000 100000', memory: `${GIB}`, current: 900 * MIB })
  assert.equal(tree.later(monitor, machine(400), smaller).memory.freeBytes, 124 * MIB)
  assert.equal(monitor.snapshot().cpu.limitCores, 1)
})

test('treats files that can no longer be read as missing', () => {
  using tree = fake({ 'proc/self/cgroup': '0::/app\n' }, groupV2('/app', { max: '100000 100000', memory: `${GIB}` }))
  using monitor = tree.open()
  const gone = Object.fromEntries(Object.keys(groupV2('/app', {})).map((name) => [name, '']))
  const { cpu, memory } = tree.later(monitor, machine(400), gone)
  assert.equal(cpu.limitCores, 4)
  near(cpu.usage, 0.1)
  assert.equal(memory.of, 'machine')
})

test('is not swayed by one spike, but by several', () => {
  using tree = fake()
  using monitor = tree.open()
  let [ticks, busy] = [0, 0]
  const second = (usage: number) => {
    ticks += 400
    busy += 400 * usage
    return tree.later(monitor, { 'proc/stat': `cpu  ${busy} 0 0 ${ticks - busy} 0 0 0 0\n` }).cpu
  }
  for (let i = 0; i < 10; i++) second(0.5)
  const spike = second(1)
  near(spike.usage, 1)
  assert.ok(spike.smoothed > 0.5 && spike.smoothed < 0.7, `${spike.smoothed}`)
  for (let i = 0; i < 5; i++) second(1)
  assert.ok(monitor.snapshot().cpu.smoothed > 0.8)
})

test('leaves the usage unchanged while counters do not move', () => {
  using tree = fake()
  using monitor = tree.open()
  tree.later(monitor, machine(2000))
  near(tree.later(monitor).cpu.usage, 0.5)
})

test('uses Node’s own figures without /proc', () => {
  const root = mkdtempSync(join(tmpdir(), 'sluice-resources-'))
  using _gone = { [Symbol.dispose]: () => rmSync(root, { recursive: true }) }
  using monitor = openResourceMonitor({ disk: join(root, 'not/yet/there'), root, sampleMs: 3_600_000 })
  const { cpu, memory, disk } = monitor.sample()
  assert.ok(cpu.usage >= 0 && cpu.usage <= 1 && cpu.limitCores >= 1)
  assert.ok(memory.limitBytes > memory.freeBytes && memory.freeBytes > 0)
  assert.ok(disk!.totalBytes > 0)
})

const BURN = `
const { parentPort } = require('node:worker_threads')
parentPort.postMessage('burning')
for (;;) {}
`

test('shows real work as CPU usage', async () => {
  const { limitCores } = (await measureResources({ disk: '.', overMs: 1 })).cpu
  const burners = Array.from({ length: Math.min(4, Math.ceil(limitCores)) }, () => new Worker(BURN, { eval: true }))
  try {
    await Promise.all(burners.map((burner) => new Promise((resolve) => burner.once('message', resolve))))
    const { cpu } = await measureResources({ disk: '.', overMs: 400 })
    // All cores were busy, or four of many. Half of that leaves room for a noisy machine.
    assert.ok(cpu.usage > (0.5 * burners.length) / Math.max(burners.length, limitCores), `${cpu.usage}`)
  } finally {
    await Promise.all(burners.map((burner) => burner.terminate()))
  }
})

test('shows a blocked event loop as lag', async () => {
  using monitor = openResourceMonitor({ disk: '.', sampleMs: 3_600_000 })
  await sleep(60)
  const untilMs = performance.now() + 150
  while (performance.now() < untilMs);
  await sleep(60)
  const { eventLoop } = monitor.sample()
  assert.ok(eventLoop.maxMs >= 100, `${eventLoop.maxMs}`)
  assert.ok(eventLoop.busy > 0 && eventLoop.busy <= 1)
  assert.ok(eventLoop.p50Ms <= eventLoop.p95Ms && eventLoop.p95Ms <= eventLoop.maxMs)
})

test('samples automatically until it is closed, which may happen twice', async () => {
  const monitor = openResourceMonitor({ disk: '.', sampleMs: 5 })
  const alive = setInterval(() => {}, 1000) // the monitor does not keep the process alive
  const { promise, resolve } = Promise.withResolvers<void>()
  const stop = monitor.onSample(() => resolve())
  await promise
  stop()
  clearInterval(alive)
  let isCalled = false
  monitor.onSample(() => (isCalled = true))
  monitor[Symbol.dispose]()
  monitor[Symbol.dispose]()
  await sleep(20)
  monitor.sample()
  assert.equal(isCalled, false)
})

test('leaves no file open', { skip: process.platform !== 'linux' }, () => {
  using tree = fake({ 'proc/self/cgroup': '0::/app\n' }, groupV2('/app', {}))
  const openFiles = () => readdirSync('/proc/self/fd').length
  const before = openFiles()
  const monitor = tree.open()
  assert.ok(openFiles() > before)
  monitor[Symbol.dispose]()
  assert.equal(openFiles(), before)
})

test('lets a process end while it is being watched', async () => {
  const program = `import { openResourceMonitor } from ${JSON.stringify(new URL('./resources.ts', import.meta.url).href)}
openResourceMonitor({ disk: '.', sampleMs: 50 })`
  await promisify(execFile)(process.execPath, ['--input-type=module-typescript', '-e', program])
})

test('takes a sample in far less than a millisecond', () => {
  let nowMs = 0
  using monitor = openResourceMonitor({ disk: '.', sampleMs: 3_600_000, now: () => nowMs++ })
  const samplesMs = cpuMs(() => {
    for (let samples = 0; samples < 200; samples++) monitor.sample()
  })
  assert.ok(samplesMs / 200 < 1, `${samplesMs / 200} ms`)
})
