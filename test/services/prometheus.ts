/** Prometheus and promtool for tests: the real scraper, rule engine and rule checker (start: 0.3 s). */
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { findProgram, type Service } from './find-program.ts'
import { withFreePort } from './free-port.ts'
import { OwnedServer } from './owned-server.ts'

export const PROMETHEUS: Service = { name: 'Prometheus', program: 'usr/bin/prometheus', package: 'prometheus' }

const PROMTOOL_MS_MAX = 300_000

export interface ToolResult {
  code: number
  /** Both streams: promtool reports problems on either. */
  output: string
}

/** Never throws if promtool finds problems: see the exit code. */
export async function promtool(args: readonly string[]): Promise<ToolResult> {
  const { path, env } = await findProgram(PROMETHEUS)
  try {
    const tool = join(dirname(path), 'promtool') // from the same package, so the same version
    const { stdout, stderr } = await promisify(execFile)(tool, args, { env, timeout: PROMTOOL_MS_MAX })
    return { code: 0, output: stdout + stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { code?: unknown; stdout?: string; stderr?: string }
    if (typeof code !== 'number') throw error
    return { code, output: `${stdout ?? ''}${stderr ?? ''}` }
  }
}

export interface ScrapeTarget {
  job: string
  /** `127.0.0.1:9090` */
  address: string
}

export interface PrometheusOptions {
  targets: readonly ScrapeTarget[]
  /** Content of rule files, by name. */
  rules?: Readonly<Record<string, string>>
  /** Interval of scrapes and of rule evaluation. Default 250. */
  intervalMs?: number
}

export interface Sample {
  metric: Record<string, string>
  value: number
}

export interface Alert {
  name: string
  state: 'pending' | 'firing'
  labels: Record<string, string>
  annotations: Record<string, string>
}

export interface PrometheusServer extends AsyncDisposable {
  readonly url: string
  readonly log: string
  /** An instant query. Throws the server's error. */
  query(expression: string): Promise<Sample[]>
  alerts(): Promise<Alert[]>
}

export async function startPrometheus(options: PrometheusOptions): Promise<PrometheusServer> {
  const { path, env } = await findProgram(PROMETHEUS)
  const server = new OwnedServer('prometheus')
  const config = join(server.folder, 'prometheus.yml')
  for (const [name, text] of Object.entries(options.rules ?? {})) writeFileSync(join(server.folder, name), text)
  writeFileSync(config, configOf(options))
  try {
    const port = await withFreePort(async (port) => {
      const from = server.log.length
      const isReady = () => server.log.slice(from).includes('Server is ready to receive web requests')
      const args = [
        `--config.file=${config}`,
        `--web.listen-address=127.0.0.1:${port}`,
        `--storage.tsdb.path=${join(server.folder, 'data')}`,
        '--log.level=info',
      ]
      await server.start({ file: path, args, env, isReady })
      return port
    })
    const url = `http://127.0.0.1:${port}`
    return {
      url,
      get log() {
        return server.log
      },
      async query(expression) {
        const data = await ask(url, `query?${new URLSearchParams({ query: expression })}`)
        if (data.resultType === 'scalar') return [{ metric: {}, value: Number(data.result[1]) }]
        return data.result.map(({ metric, value }: { metric: Record<string, string>; value: [number, string] }) => ({
          metric,
          value: Number(value[1]),
        }))
      },
      async alerts() {
        const { alerts } = await ask(url, 'alerts')
        return alerts.map(({ labels, state, annotations }: Omit<Alert, 'name'>) => {
          const { alertname = '', ...others } = labels
          return { name: alertname, state, labels: others, annotations }
        })
      },
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    }
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the shape is Prometheus' own, and each caller knows its part
async function ask(url: string, path: string): Promise<any> {
  const answer = await fetch(`${url}/api/v1/${path}`, { signal: AbortSignal.timeout(120_000) })
  const body = (await answer.json()) as { status: string; error?: string; data: unknown }
  if (body.status !== 'success') throw new Error(`Prometheus refuses ${decodeURIComponent(path)}: ${body.error}`)
  return body.data
}

function configOf({ targets, rules = {}, intervalMs = 250 }: PrometheusOptions): string {
  return JSON.stringify({
    global: {
      scrape_interval: `${intervalMs}ms`,
      scrape_timeout: `${intervalMs}ms`,
      evaluation_interval: `${intervalMs}ms`,
    },
    rule_files: Object.keys(rules),
    scrape_configs: [...Map.groupBy(targets, ({ job }) => job)].map(([job, own]) => ({
      job_name: job,
      static_configs: [{ targets: own.map(({ address }) => address) }],
    })),
  })
}
