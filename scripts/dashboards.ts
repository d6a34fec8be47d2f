/** Writes deploy/grafana/dashboards/*.json. With `--check` it writes nothing and fails if a file is out of date. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DASHBOARDS, type Dashboard, type Panel } from './dashboards/panels.ts'

const FOLDER = new URL('../deploy/grafana/dashboards/', import.meta.url).pathname
const DATASOURCE = { type: 'prometheus', uid: 'prometheus' }
/** Grafana's grid has 24 columns. */
const PANEL = { width: 8, height: 8 }
const STAT = { width: 4, height: 4 }

/** File name → content. */
export function dashboardFiles(): Record<string, string> {
  return Object.fromEntries(DASHBOARDS.map((one) => [`${one.name}.json`, `${JSON.stringify(boardOf(one), null, 2)}\n`]))
}

/** For Grafana 11. The uid must not change: links and bookmarks use it. */
function boardOf({ name, title, description, variables, panels }: Dashboard) {
  return {
    uid: `sluice-${name}`,
    title: `Sluice: ${title}`,
    description,
    tags: ['sluice'],
    schemaVersion: 39,
    version: 1,
    editable: true,
    graphTooltip: 1,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    timezone: 'browser',
    links: [
      { type: 'dashboards', tags: ['sluice'], title: 'Sluice', asDropdown: true, includeVars: true, keepTime: true },
    ],
    templating: { list: variables.map(variableOf) },
    annotations: { list: [] },
    panels: laidOut(panels),
  }
}

function variableOf({ name, query }: Dashboard['variables'][number]) {
  return {
    name,
    label: name,
    type: 'query',
    datasource: DATASOURCE,
    query: { query, refId: name },
    definition: query,
    refresh: 2,
    sort: 1,
    multi: true,
    includeAll: true,
    allValue: '.*',
    current: { selected: true, text: ['All'], value: ['$__all'] },
  }
}

/** From left to right, starting a new row when one is full; stats and graphs never share a row. */
function laidOut(panels: readonly Panel[]) {
  let x = 0
  let y = 0
  let height = 0
  return panels.map((panel, i) => {
    const size = panel.kind === 'stat' ? STAT : PANEL
    if (x + size.width > 24 || (x > 0 && size.height !== height)) {
      x = 0
      y += height
    }
    height = size.height
    const gridPos = { x, y, w: size.width, h: size.height }
    x += size.width
    return { id: i + 1, gridPos, ...panelOf(panel) }
  })
}

function panelOf({ kind, title, description, unit, warn, bad, isLowBad, queries, isStacked }: Panel) {
  const steps = [{ color: isLowBad ? 'red' : 'green', value: null as number | null }]
  if (isLowBad) {
    if (bad !== undefined) steps.push({ color: 'orange', value: bad })
    if (warn !== undefined) steps.push({ color: 'green', value: warn })
  } else {
    if (warn !== undefined) steps.push({ color: 'orange', value: warn })
    if (bad !== undefined) steps.push({ color: 'red', value: bad })
  }
  const hasThresholds = warn !== undefined || bad !== undefined
  const custom = kind === 'timeseries' ? { custom: lineStyle(isStacked === true, hasThresholds) } : {}
  return {
    type: kind,
    title,
    description,
    datasource: DATASOURCE,
    fieldConfig: { defaults: { unit, min: 0, thresholds: { mode: 'absolute', steps }, ...custom }, overrides: [] },
    options: kind === 'stat' ? STAT_OPTIONS : LINE_OPTIONS,
    targets: queries.map(([expr, legendFormat], i) => ({
      refId: String.fromCharCode(65 + i),
      datasource: DATASOURCE,
      expr,
      legendFormat,
      range: kind !== 'stat',
      instant: kind === 'stat',
    })),
  }
}

const STAT_OPTIONS = { colorMode: 'value', graphMode: 'none', reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false } } // biome-ignore format: one line reads better
const LINE_OPTIONS = { legend: { displayMode: 'table', placement: 'bottom', calcs: ['lastNotNull', 'max'] }, tooltip: { mode: 'multi', sort: 'desc' } } // biome-ignore format: one line reads better

function lineStyle(isStacked: boolean, hasThresholds: boolean) {
  return {
    drawStyle: 'line',
    fillOpacity: isStacked ? 30 : 10,
    stacking: { mode: isStacked ? 'normal' : 'none', group: 'A' },
    thresholdsStyle: { mode: hasThresholds ? 'line' : 'off' },
  }
}

async function main(isCheck: boolean): Promise<number> {
  await mkdir(FOLDER, { recursive: true })
  let outdated = 0
  for (const [name, text] of Object.entries(dashboardFiles())) {
    const path = join(FOLDER, name)
    if ((await readFile(path, 'utf8').catch(() => '')) === text) continue
    outdated++
    if (isCheck) console.error(`${path} is out of date: run node scripts/dashboards.ts`)
    else await writeFile(path, text)
  }
  return isCheck && outdated > 0 ? 1 : 0
}

if (import.meta.main) process.exitCode = await main(process.argv.includes('--check'))
