/** The files for Prometheus and Grafana: what promtool says of them, and that they name only what there is. */
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { dashboardFiles } from '../scripts/dashboards.ts'
import { openMetrics } from '../src/observe/metrics.ts'
import { METRICS } from '../src/observe/metrics-table.ts'
import { promtool } from '../test/services/prometheus.ts'
import { temporaryFolder } from '../test/sluice.ts'
import { alertNames, metricsIn, RULES } from './alerts.ts'

const HERE = new URL('.', import.meta.url).pathname
const TESTS = join(HERE, 'prometheus/rules/tests/sluice.yml')

async function accepts(args: readonly string[]): Promise<void> {
  const { code, output } = await promtool(args)
  assert.equal(code, 0, output)
}

/** What the registry holds, which is more than the table: process and Node metrics too. */
async function exported(): Promise<Set<string>> {
  const text = await (await openMetrics({ version: '0' })).render()
  return new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map((match) => match[1]!))
}

test('promtool accepts the configuration', async () => {
  using folder = temporaryFolder()
  const secret = join(folder.path, 'key')
  writeFileSync(secret, 'slk_x')
  mkdirSync(join(folder.path, 'rules'))
  writeFileSync(join(folder.path, 'rules', 'sluice.yml'), readFileSync(RULES))
  const config = readFileSync(join(HERE, 'prometheus/prometheus.yml'), 'utf8')
  const path = join(folder.path, 'prometheus.yml')
  writeFileSync(path, config.replace('/run/secrets/sluice_metrics_key', secret))
  await accepts(['check', 'config', path])
})

test('promtool accepts the rules', async () => await accepts(['check', 'rules', RULES]))

test('every alert fires when it should and is silent when it should be', async () => {
  await accepts(['test', 'rules', TESTS])
  const text = readFileSync(TESTS, 'utf8')
  for (const name of alertNames()) {
    assert.match(text, new RegExp(`name: ${name} fires\\n`))
    assert.match(text, new RegExp(`name: ${name} is silent\\n`))
  }
})

test('every alert says how bad it is, what it is, how much, and where the steps are', () => {
  const alerts = readFileSync(RULES, 'utf8').split('- alert: ').slice(1)
  assert.ok(alerts.length >= 12)
  for (const alert of alerts) {
    const name = /^\w+/.exec(alert)![0]
    assert.match(alert, /severity: (info|warning|critical)\n/, name)
    assert.match(alert, /summary: ".+"/, name)
    if (name !== 'SluiceTargetDown') assert.match(alert, /description: ".*\{\{ \$value/, name)
    assert.ok(alert.includes(`runbook_url: docs/runbook.md#${name.toLowerCase()}\n`), name)
  }
})

test('rules and dashboards name only metrics that are exported', async () => {
  const known = await exported()
  for (const name of Object.keys(METRICS)) assert.ok(known.has(name), name)
  const texts = { rules: readFileSync(RULES, 'utf8').replace(/^.*(?:record|runbook_url|#).*$/gm, ''), ...expressions() }
  for (const [where, text] of Object.entries(texts)) {
    const names = metricsIn(text)
    assert.ok(names.length > 0, where)
    assert.deepEqual(names.filter((name) => !known.has(name)), [], where) // biome-ignore format: one line reads better
  }
})

test('the dashboards are those of the script, with no panel over another', () => {
  const files = dashboardFiles()
  assert.deepEqual(readdirSync(join(HERE, 'grafana/dashboards')).sort(), Object.keys(files).sort())
  for (const [name, text] of Object.entries(files)) {
    assert.ok(readFileSync(join(HERE, 'grafana/dashboards', name), 'utf8') === text, 'run node scripts/dashboards.ts')
    const board = JSON.parse(text) as Board
    assert.equal(board.uid, `sluice-${name.replace('.json', '')}`)
    assert.equal(new Set(board.panels.map(({ id }) => id)).size, board.panels.length)
    const taken = new Set<string>()
    for (const { gridPos, description, title } of board.panels) {
      assert.ok(description.length > 5 && gridPos.x + gridPos.w <= 24, title)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          assert.ok(!taken.has(`${x} ${y}`), `${name}: ${title} covers another panel`)
          taken.add(`${x} ${y}`)
        }
    }
  }
})

interface Board {
  uid: string
  panels: { id: number; title: string; description: string; gridPos: { x: number; y: number; w: number; h: number } }[]
}

function expressions(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(dashboardFiles()).map(([name, text]) => {
      const board = JSON.parse(text) as { panels: { targets: { expr: string }[] }[]; templating: { list: { definition: string }[] } } // biome-ignore format: one line reads better
      const queries = board.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
      return [name, [...queries, ...board.templating.list.map(({ definition }) => definition)].join('\n')]
    }),
  )
}
