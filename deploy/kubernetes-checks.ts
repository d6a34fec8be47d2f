/** Manifests as kustomize puts them together, and what would be wrong with one of them. */
import { existsSync, globSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { parseBytes } from '../src/core/options.ts'
import {
  commandProblems,
  documentsOf,
  graceProblems,
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

const OWN = ownImages(textOf('Dockerfile'), JSON.parse(textOf('package.json')).version)
/** Where the packages with the schemas of Kubernetes and KEDA keep a kind. */
const PACKAGES: Record<string, string> = { 'keda.sh/v1alpha1': '@kubernetes-models/keda/keda.sh/v1alpha1' }

export interface Kustomization {
  folder: string
  /** Manifests of its own and of what it is built on. */
  documents: Json[]
  problems: string[]
}

/** Resources, components with patches, a namespace: all that our kustomizations use; a field we do not know of is a problem. */
export function build(folder: string): Kustomization {
  const [kustomization] = documentsOf(textOf(`${folder}/kustomization.yaml`))
  const known = ['apiVersion', 'kind', 'namespace', 'components', 'resources', 'images', 'patches']
  const problems = Object.keys(kustomization)
    .filter((name) => !known.includes(name))
    .map((name) => `${folder}: ${name}?`)
  let documents: Json[] = []
  const listed = new Set<string>()
  const patches: Json[] = kustomization.patches ?? []
  for (const { path } of patches) listed.add(normalize(`${folder}/${path}`))
  for (const resource of (kustomization.resources ?? []) as string[]) {
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
  for (const component of (kustomization.components ?? []) as string[]) {
    const path = normalize(`${folder}/${component}`)
    problems.push(...build(path).problems)
    documents = documents.map((one) => patched(one, path))
  }
  for (const file of globSync(`${folder}/*.yaml`, { cwd: ROOT }))
    if (!listed.has(file) && !/kustomization|\.example\.yaml$/.test(file)) problems.push(`${file} is not listed`)
  return { folder, documents: withImages(documents, kustomization.images ?? []), problems }
}

/** As kustomize does it: an entry is for images of exactly this name, whatever their tag. */
export function withImages(documents: readonly Json[], images: readonly Json[]): Json[] {
  return documents.map((manifest) => {
    if (manifest.kind !== 'Deployment') return manifest
    const changed = structuredClone(manifest)
    for (const container of changed.spec.template.spec.containers) {
      const [name, tag] = container.image.split(/:(?=[^:/]+$)/)
      const entry = images.find((one) => one.name === name)
      if (entry !== undefined) container.image = `${entry.newName ?? name}:${entry.newTag ?? tag}`
    }
    return changed
  })
}

/** A manifest with the patches of a component on it. Its own name stays. */
export function patched(manifest: Json, component: string): Json {
  const [{ patches }] = documentsOf(textOf(`${component}/kustomization.yaml`))
  const { kind, metadata } = manifest
  const isMeant = ({ target }: Json) => {
    const [label, value] = target.labelSelector?.split('=') ?? []
    const isNamed = new RegExp(`^(?:${target.name ?? '.*'})$`).test(metadata.name)
    return target.kind === kind && isNamed && (label === undefined || metadata.labels?.[label] === value)
  }
  const changed = patches
    .filter(isMeant)
    .reduce((under: Json, { path }: Json) => merged(under, documentsOf(textOf(`${component}/${path}`))[0]), manifest)
  return { ...changed, metadata: { ...changed.metadata, name: metadata.name } }
}

/** By what Kubernetes tells the entries of these lists apart; other lists are replaced as a whole. */
const MERGE_KEYS: Record<string, string> = {
  containers: 'name',
  env: 'name',
  ports: 'containerPort',
  topologySpreadConstraints: 'topologyKey',
  volumeMounts: 'mountPath',
  volumes: 'name',
}

/** A strategic merge: what the patch says is put over what is there; `null` takes it away. */
function merged(under: Json, over: Json, field = ''): Json {
  const key = MERGE_KEYS[field]
  if (Array.isArray(under) && Array.isArray(over) && key !== undefined) {
    const left = under.filter((one) => !over.some((other) => other[key] === one[key]))
    return [
      ...over.map((one) =>
        merged(
          under.find((other) => other[key] === one[key]),
          one,
        ),
      ),
      ...left,
    ]
  }
  const isObject = (value: Json) => typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!isObject(under) || !isObject(over)) return over
  const names = new Set([...Object.keys(under), ...Object.keys(over)])
  return Object.fromEntries(
    [...names]
      .filter((name) => over[name] !== null)
      .map((name) => [name, name in over ? merged(under[name], over[name], name) : under[name]]),
  )
}

/** Folders that can be applied; a component is only a part of others. */
export const kustomizations = (under: string): string[] =>
  globSync(`${under}/**/kustomization.yaml`, { cwd: ROOT })
    .filter((path) => documentsOf(textOf(path))[0].kind === 'Kustomization')
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
  // A restart brings no database back: what ends a pod asks nobody.
  const asked = { startupProbe: '/livez', livenessProbe: '/livez', readinessProbe: isServer ? '/readyz' : '/healthz' }
  for (const [probe, wanted] of Object.entries(asked)) {
    const { path, port: name } = container[probe]?.httpGet ?? {}
    if (path !== wanted || name !== container.ports?.[0]?.name) problems.push(`${probe} asks ${path} of ${name}`)
  }
  if (!isServer) problems.push(...reserveProblems(parseBytes(`${resources.limits?.memory ?? 0}B`), given))
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
    for (const { name, items } of volumes.flatMap(secretsOf))
      for (const { key } of items ?? [{ key: keys.get(name)?.[0] }])
        if (!keys.get(name)?.includes(key)) problems.push(`${metadata.name}: no secret ${name}/${key}`)
  }
  return problems
}

/** The secrets of a volume: its own, or those put together in it. */
function secretsOf({ secret, projected }: Json): Json[] {
  if (secret !== undefined) return [{ name: secret.secretName, items: secret.items }]
  return (projected?.sources ?? []).map((source: Json) => source.secret)
}

/** What these Deployments take on, for `partProblems`. */
export const workersIn = (documents: readonly Json[]): WorkerWords[] =>
  documents
    .filter(({ kind }) => kind === 'Deployment')
    .map(({ spec }) => spec.template.spec.containers[0])
    .filter(({ args }) => args[0] === 'worker')
    .map(({ args, image }) => ({ words: args, image }))
