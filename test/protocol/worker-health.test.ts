/** A worker of the task protocol reports its health, from its start to its end. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { startInstances } from '../../src/app/protocol/instances.ts'
import { resolveConfig } from '../../src/config/config.ts'
import { until } from '../fleet.ts'
import { freePort } from '../services/free-port.ts'
import { ProtocolRig } from './rig.ts'

test('answers /healthz and /metrics while it waits, works and drains', async () => {
  await using rig = await ProtocolRig.open()
  const address = `127.0.0.1:${await freePort()}`
  const ask = async (path: string) => await fetch(`http://${address}${path}`).catch(() => undefined)
  const worker = rig.worker('--metrics', address, '--region', 'eu', '--drain-timeout', '20s')
  await until('it is there', async () => (await ask('/healthz'))?.status === 200)
  const { status, type, region, runId } = (await (await ask('/healthz'))!.json()) as Record<string, unknown>
  assert.deepEqual([status, type, region, runId], ['ok', 'things', 'eu', null])

  const held: ServerResponse[] = []
  rig.site.answer = (path, response) => {
    if (!path.startsWith('/thing/')) return false
    held.push(response)
    return true
  }
  await rig.put({ args: { n: 1 } })
  await until('it is at work', () => held.length === 1)
  assert.match(await (await ask('/metrics'))!.text(), /^sluice_info\{|^process_cpu/m)
  worker.child.kill('SIGTERM')
  await until('it says that it drains', async () => (await ask('/healthz'))?.status === 503)
  const { problem } = (await (await ask('/healthz'))!.json()) as { problem: string }
  assert.equal(problem, 'draining: SIGTERM received')
  for (const response of held) response.setHeader('content-type', 'text/html').end('<h1>late</h1>')
  const { code, stdout, stderr } = await worker.result
  assert.equal(code, 4, stderr)
  assert.match(stdout, /1 tasks, 0 failed/)
})

for (const as of ['threads', 'processes'] as const)
  test(`tells the owner of instances repeatedly that Redis answers them (${as})`, async () => {
    await using rig = await ProtocolRig.open()
    let answers = 0
    const scraper = rig.scraperFile('things')
    const config = await resolveConfig({ flags: { drainTimeout: '0' }, cwd: rig.folder.path })
    const instances = startInstances({
      spec: { scraper, config, redisUrl: rig.server.url, prefix: '', tasksMax: 1, healthMs: 3_600_000, retryMs: 100 },
      type: 'things',
      count: 1,
      as,
      heapMbMax: 512,
      onLog: () => {},
      onTask: () => {},
      onAnswer: () => answers++,
    })
    await until('it heard twice', () => answers >= 2)
    instances.stop()
    await instances.ended
  })
