/** Manifests as kustomize puts them together, and what would be wrong with one of them. */
import { existsSync, globSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
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

const OWN = ownImages(textOf('Dockerfile'), JSON.parse(textOf('package.json')).version)
/** Where the packages with the schemas of Kubernetes and KEDA keep a kind. */
const PACKAGES: Record<string, string> = { 'keda.sh/v1alpha1': '@kubernetes-models/keda/keda.sh/v1alpha1' }

export interface Kustomization {
  folder: string
  /** Manifests of its own and of what it is built on. */
  documents: Json[]
  problems: string[]
}

/** Resources, their namespace: all that our kustomizations use; a field we do not know of is a problem. */
export function build(folder: string): Kustomization {
  const [kustomization] = documentsOf(textOf(`${folder}/kustomization.yaml`))
  const known = ['apiVersion', 'kind', 'namespace', 'resources', 'images']
  const problems = Object.keys(kustomization)
    .filter((name) => !known.includes(name))
    .map((name) => `${folder}: ${name}?`)
  const documents: Json[] = []
  const listed = new Set<string>()
  for (const resource of kustomization.resources as string[]) {
    const path = normalize(`${folder}/${resource}`)
    listed.add(path)
    if (!existsSync(join(ROOT, path))) problems.push(`${folder}: there is no ${resource}`)
    else if (path.endsWith('.yaml')) documents.push(...documentsOf(textOf(path)))
    else {
      const base = build(path)
      documents.push(...base.documents)
      problems.push(...base.problems)
    }
  }
  for (const file of globSync(`${folder}/*.yaml`, { cwd: ROOT }))
    if (!listed.has(file) && !/kustomization|\.example\.yaml$/.test(file)) problems.push(`${file} is not listed`)
  return { folder, documents, problems }
}

export const kustomizations = (under: string): string[] =>
  globSync(`${under}/**/kustomization.yaml`, { cwd: ROOT })
    .map((path) => dirname(path))
    .sort()

/** Types by the published schema; and names: whatever the schema's check did not look at, it does not know. */
export async function schemaProblems(manifest: Json): Promise<string[]> {
  const { apiVersion, kind } = manifest
  const path = PACKAGES[apiVersion] ?? `kubernetes-models/${apiVersion}`
  const model = (await import(`${path}/${kind}`).catch(() => ({})))[kind]
  if (model === undefined) return [`there is no ${kind} in ${apiVersion}`]
  const seen = new Map<object, Set<string>>()
  try {
    new model(manifest).validate()
    model.prototype.validate.call(watched(manifest, seen))
  } catch (error) {
    return [`${kind} ${manifest.metadata?.name}: ${(error as Error).message}`]
  }
  return unseen(manifest, seen, `${kind} ${manifest.metadata?.name}`)
}

function watched(value: Json, seen: Map<object, Set<string>>): Json {
  if (typeof value !== 'object' || value === null) return value
  const names = seen.get(value) ?? new Set()
  seen.set(value, names)
  return new Proxy(value, {
    get(target, name) {
      if (typeof name === 'string') names.add(name)
      return watched(target[name], seen)
    },
  })
}

function unseen(value: Json, seen: Map<object, Set<string>>, where: string): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) =>
    seen.get(value)?.has(name) ? unseen(inner, seen, `${where}.${name}`) : [`${where}.${name} is not in the schema`],
  )
}

/** What is wrong with a Deployment of ours; `options` is the config map all of them read. */
export async function deploymentProblems({ metadata, spec }: Json, options: Record<string, string>): Promise<string[]> {
  const pod = spec.template.spec
  const [container] = pod.containers
  const { args, env, securityContext: own = {}, resources = {} } = container
  const problems = [...imageProblems(container.image, OWN), ...(await commandProblems(args))]
  const given: Record<string, string> = {
    ...options,
    ...Object.fromEntries(env.map((one: Json) => [one.name, one.value])),
  }
  problems.push(...variableProblems(Object.keys(given)))
  problems.push(...graceProblems((pod.terminationGracePeriodSeconds ?? 30) * 1000, args, given))
  const isServer = args[0] === 'serve'
  const port = isServer ? PORTS.serve : PORTS.worker
  if (container.ports?.[0]?.containerPort !== port)
    problems.push(`nobody listens on ${container.ports?.[0]?.containerPort}`)
  if (!isServer && given['SLUICE_METRICS'] !== `0.0.0.0:${port}`) problems.push('its probes have nobody to ask')
  const paths = isServer ? ['/healthz', '/readyz'] : ['/healthz', '/metrics']
  for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
    const { path, port: name } = container[probe]?.httpGet ?? {}
    if (!paths.includes(path) || name !== container.ports[0].name) problems.push(`${probe} asks ${path} of ${name}`)
  }
  if (resources.requests?.memory === undefined || resources.limits?.memory === undefined) problems.push('no limits')
  const isHard =
    pod.securityContext?.runAsNonRoot === true &&
    pod.securityContext.runAsUser === 10001 &&
    pod.securityContext.seccompProfile?.type === 'RuntimeDefault' &&
    own.readOnlyRootFilesystem === true &&
    own.allowPrivilegeEscalation === false &&
    own.capabilities?.drop?.[0] === 'ALL' &&
    pod.automountServiceAccountToken === false
  if (!isHard) problems.push('it is not hardened')
  const labels = spec.template.metadata.labels
  const wrong = Object.entries(spec.selector.matchLabels).filter(([name, value]) => labels[name] !== value)
  if (wrong.length > 0) problems.push('its selector does not match its pods')
  return problems.map((problem) => `${metadata.name}: ${problem}`)
}

/** Secrets, keys, config maps and accounts that pods name and that nobody makes. */
export function referenceProblems(documents: readonly Json[], secrets: readonly Json[]): string[] {
  const keys = new Map(secrets.map(({ metadata, stringData }) => [metadata.name, Object.keys(stringData)]))
  const problems: string[] = []
  const has = (kind: string, name: string) => documents.some((one) => one.kind === kind && one.metadata.name === name)
  const need = (kind: string, name: string, by: string) => {
    if (!has(kind, name)) problems.push(`${by}: there is no ${kind} ${name}`)
  }
  for (const { kind, metadata, spec } of documents) {
    if (kind === 'TriggerAuthentication')
      for (const { name, key } of spec.secretTargetRef)
        if (!keys.get(name)?.includes(key)) problems.push(`${metadata.name}: no secret ${name}/${key}`)
    if (kind !== 'Deployment') continue
    const { volumes, containers, serviceAccountName } = spec.template.spec
    need('ServiceAccount', serviceAccountName, metadata.name)
    for (const { configMapRef } of containers[0].envFrom ?? []) need('ConfigMap', configMapRef.name, metadata.name)
    for (const { secret } of volumes.filter((volume: Json) => volume.secret !== undefined))
      for (const { key } of secret.items ?? [{ key: keys.get(secret.secretName)?.[0] }])
        if (!keys.get(secret.secretName)?.includes(key))
          problems.push(`${metadata.name}: no secret ${secret.secretName}/${key}`)
  }
  return problems
}
