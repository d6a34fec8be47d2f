/**
 * Prometheus with the configuration of deploy/prometheus: DNS discovery is replaced by files with ports, and intervals are
 * shorter.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { documentsOf, type Json } from '../../deploy/checks.ts'
import { findProgram } from '../../test/services/find-program.ts'
import { withFreePort } from '../../test/services/free-port.ts'
import { OwnedServer } from '../../test/services/owned-server.ts'
import { PROMETHEUS } from '../../test/services/prometheus.ts'
import type { Compose } from './compose.ts'
import type { Server } from './servers.ts'

/** Instead of the file's 15 s: a run of this size would be over before that. */
const INTERVAL = '1s'

export interface Target {
  health: 'up' | 'down' | 'unknown'
  job: string
  instance: string
  lastError: string
}

export interface Alert {
  state: 'pending' | 'firing'
  name: string
}

export interface Prometheus extends Server {
  readonly url: string
  /** The services with these names now have processes on these ports. */
  announce(ports: ReadonlyMap<string, readonly number[]>): void
  targets(): Promise<Target[]>
  alerts(): Promise<Alert[]>
  rules(): Promise<number>
}

export async function startPrometheus(compose: Compose): Promise<Prometheus> {
  const { path, env } = await findProgram(PROMETHEUS)
  const { command, locate } = compose.place('prometheus')
  const config: Json = documentsOf(readFileSync(locate('/etc/prometheus/prometheus.yml'), 'utf8'))[0]
  const server = new OwnedServer('prometheus')
  const fileOf = (job: string) => join(server.folder, `${job}.json`)
  const asked: { job: string; names: string[] }[] = []
  config.global = {
    ...config.global,
    scrape_interval: INTERVAL,
    scrape_timeout: INTERVAL,
    evaluation_interval: INTERVAL,
  }
  config.rule_files = config.rule_files.map((rules: string) => locate(join('/etc/prometheus', rules)))
  for (const scrape of config.scrape_configs) {
    const { job_name: job, authorization, dns_sd_configs: dns } = scrape
    if (authorization !== undefined) authorization.credentials_file = locate(authorization.credentials_file)
    if (dns === undefined) continue
    asked.push({ job, names: dns.flatMap(({ names }: { names: string[] }) => names) })
    delete scrape.dns_sd_configs
    scrape.file_sd_configs = [{ files: [fileOf(job)], refresh_interval: '1s' }]
  }
  const announce = (ports: ReadonlyMap<string, readonly number[]>) => {
    for (const { job, names } of asked) {
      const targets = names.flatMap((name) => ports.get(name) ?? []).map((port) => `127.0.0.1:${port}`)
      writeFileSync(`${fileOf(job)}.new`, JSON.stringify([{ targets }]))
      renameSync(`${fileOf(job)}.new`, fileOf(job))
    }
  }
  try {
    announce(new Map())
    const port = await withFreePort(async (port) => {
      const own = config.scrape_configs.find((scrape: Json) => scrape.job_name === 'prometheus')
      own.static_configs = [{ targets: [`127.0.0.1:${port}`] }]
      const file = join(server.folder, 'prometheus.yml')
      writeFileSync(file, JSON.stringify(config))
      const from = server.log.length
      await server.start({
        file: path,
        args: [...command.map((word) => localFlag(word, file, locate)), `--web.listen-address=127.0.0.1:${port}`],
        env,
        isReady: () => server.log.slice(from).includes('Server is ready to receive web requests'),
      })
      return port
    })
    return { ...asking(`http://127.0.0.1:${port}`), announce, port, get pid() { return server.pid }, get log() { return server.log }, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() } // biome-ignore format: one line reads better
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
}

function localFlag(word: string, file: string, locate: (path: string) => string): string {
  const [flag, value] = word.split('=') as [string, string]
  return flag === '--config.file' ? `${flag}=${file}` : `${flag}=${locate(value)}`
}

function asking(url: string) {
  const ask = async (path: string): Promise<Json> => {
    const answer = await fetch(`${url}/api/v1/${path}`, { signal: AbortSignal.timeout(10_000) })
    return ((await answer.json()) as Json).data
  }
  return {
    url,
    async targets(): Promise<Target[]> {
      const { activeTargets } = await ask('targets')
      return activeTargets.map(({ health, lastError, labels }: Json) => ({ health, lastError, ...labels }))
    },
    async alerts(): Promise<Alert[]> {
      return (await ask('alerts')).alerts.map(({ state, labels }: Json) => ({ state, name: labels.alertname }))
    },
    async rules(): Promise<number> {
      return (await ask('rules')).groups.flatMap(({ rules }: Json) => rules).length
    },
  }
}
