/** What the stack prints at the end. */
import type { JobResult } from './job.ts'
import type { Stack } from './stack.ts'

/** Columns as wide as their widest cell. */
function table(rows: readonly (readonly (string | number)[])[]): string {
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map((row) => String(row[i]).length)))
  return rows.map((row) => row.map((cell, i) => String(cell).padEnd(widths[i]!)).join('  ').trimEnd()).join('\n') // biome-ignore format: one chain
}

export function serviceTable({ services }: Stack): string {
  const rows = [...services.values()].flat().map(({ name, pid, port, readyMs }) => [name, pid ?? 'ended', port, Math.round(readyMs)]) // biome-ignore format: one line reads better
  return table([['service', 'pid', 'port', 'ready after ms'], ...rows])
}

export function jobTable(
  result: JobResult,
  { queue, readyMs, wholeMs }: { queue: string; readyMs: number; wholeMs: number },
): string {
  const seconds = (ms: number) => (ms / 1000).toFixed(1)
  const workers = result.workers.map(
    ({ count, fromPage, atMs }) => `${count} from page ${fromPage} (${seconds(atMs)} s)`,
  )
  return table([
    ['queue', queue],
    ['run', `${result.runId}, finished`],
    ['pages', `${result.pages}, of them tried again ${result.retried}`],
    ['items', `${result.items}, each book once`],
    ['files', `${result.files}, stored by the file worker`],
    [
      'seconds',
      `${seconds(result.runMs)} of the run; ${seconds(readyMs)} until all was ready; ${seconds(wholeMs)} in all`,
    ],
    ['workers', workers.join(', ')],
    ['schedule', `started run ${result.scheduledRunId}, finished`],
    [
      'prometheus',
      `${result.targetsUp} targets up, ${result.rules} rules, no alert fires${result.pending.length > 0 ? `, pending: ${[...new Set(result.pending)].join(', ')}` : ''}`,
    ],
  ])
}

export function addressTable(stack: Stack): string {
  return table([
    ['API', `${stack.apiUrl}/v1`],
    ['its key', stack.apiKey],
    ['Prometheus', stack.prometheus.url],
    ...stack.links(),
  ])
}
