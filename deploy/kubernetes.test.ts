/** The manifests: they fit the schemas of Kubernetes, are all listed, and name only what exists. No cluster is needed. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import indeed from '../scrapers/jobs/indeed/indeed.ts'
import { resolveConfig } from '../src/config/config.ts'
import { parseBytes } from '../src/core/options.ts'
import { temporaryFolder } from '../test/sluice.ts'
import { documentsOf, type Json, partProblems, textOf } from './checks.ts'
import {
  build,
  deploymentProblems,
  kustomizations,
  patched,
  referenceProblems,
  schemaProblems,
  withImages,
  workersIn,
} from './kubernetes-checks.ts'

const BASE = 'deploy/kubernetes/base'
const FOLDERS = kustomizations('deploy/kubernetes')
const SECRETS = documentsOf(textOf(`${BASE}/secrets.example.yaml`))
const base = build(BASE)
const optionsOf = (documents: readonly Json[]) => documents.find(({ kind }) => kind === 'ConfigMap').data
const named = (documents: readonly Json[], kind: string, name: string) =>
  structuredClone(documents.find((one) => one.kind === kind && one.metadata.name === name))

test('there is a base, and overlays for one region, several, and the task protocol', () => {
  const overlays = ['regions', 'single-region', 'task-protocol'].map((name) => `deploy/kubernetes/overlays/${name}`)
  assert.deepEqual(FOLDERS, [BASE, ...overlays])
  const deployments = base.documents.filter(({ kind }) => kind === 'Deployment').map(({ metadata }) => metadata.name)
  assert.deepEqual(deployments, ['api', 'scheduler', 'worker-books', 'worker-jobs', 'browser-worker', 'file-worker'])
})

for (const folder of FOLDERS) {
  const { documents, problems } = build(folder)
  test(`${folder}: every file is listed, and every manifest fits the schema of its kind`, async () => {
    assert.deepEqual(problems, [])
    for (const manifest of documents) assert.deepEqual(await schemaProblems(manifest), [])
    const ids = documents.map(({ kind, metadata }) => `${kind}/${metadata.name}`)
    assert.equal(new Set(ids).size, ids.length, 'two manifests have one name')
  })
  test(`${folder}: every Deployment is hardened, limited, probed where it listens, and given time to drain`, async () => {
    const found = documents.filter(({ kind }) => kind === 'Deployment')
    for (const one of found) assert.deepEqual(await deploymentProblems(one, optionsOf(documents)), [])
    assert.deepEqual(referenceProblems(documents, SECRETS), [])
  })
  test(`${folder}: pages, files and browsers have workers in every region`, () =>
    assert.deepEqual(partProblems(workersIn(documents)), []))
}

test('a region without one of the parts is seen', () => {
  const { documents } = build('deploy/kubernetes/overlays/regions')
  const eu = named(documents, 'Deployment', 'worker-eu')
  const others = documents.filter(({ metadata }) => metadata.name !== 'worker-eu')
  const [container] = eu.spec.template.spec.containers
  container.args.push('--only', 'pages')
  assert.deepEqual(partProblems(workersIn([...others, eu])), ['nobody does files in region eu'])
  container.image = 'sluice:0.1.0'
  assert.deepEqual(partProblems(workersIn([...others, eu])).length, 2)
  container.args.splice(container.args.indexOf('--only') + 1, 1, 'files')
  assert.match(partProblems(workersIn([...others, eu])).join(), /pages in region eu.*browser in region eu/)
})

test('the component puts what is common on every Deployment, and leaves what is its own', () => {
  const { metadata, spec } = named(base.documents, 'Deployment', 'browser-worker')
  const { containers, volumes, automountServiceAccountToken } = spec.template.spec
  assert.deepEqual([metadata.name, automountServiceAccountToken, containers.length], ['browser-worker', false, 1])
  assert.deepEqual([containers[0].image, containers[0].args[0]], ['sluice-browser:0.1.0', 'worker'])
  assert.deepEqual(volumes.map(({ name }: Json) => name).sort(), ['s3', 'scratch', 'secrets', 'tmp'])
  const variables = containers[0].env.map(({ name }: Json) => name)
  assert.equal(new Set(variables).size, variables.length)
  assert.ok(variables.includes('SLUICE_METRICS') && variables.includes('SLUICE_STORE_FILE'))
})

test('a new tag in an overlay leaves each Deployment its own image', () => {
  const images = (documents: readonly Json[]) =>
    documents
      .filter(({ kind }) => kind === 'Deployment')
      .map(({ metadata, spec }) => [metadata.name, spec.template.spec.containers[0].image])
  for (const folder of FOLDERS.filter((one) => one !== BASE)) {
    const [{ images: entries }] = documentsOf(textOf(`${folder}/kustomization.yaml`))
    const tagged = entries.map((entry: Json) => ({ ...entry, newTag: '9.9.9' }))
    const renewed = new Map(images(withImages(base.documents, tagged)) as [string, string][])
    for (const [name, image] of images(base.documents))
      assert.equal(renewed.get(name), `registry.example.com/${image.replace('0.1.0', '9.9.9')}`, folder)
    assert.match(renewed.get('browser-worker')!, /sluice-browser:/)
  }
})

test('a Deployment that KEDA scales says no number, so that to apply it again leaves the fleet as it is', () => {
  const { documents } = build('deploy/kubernetes/overlays/task-protocol')
  const scalers = kustomizations('deploy/keda').flatMap((folder) => build(folder).documents)
  const scaled = new Set(scalers.map(({ spec }) => spec.scaleTargetRef?.name))
  for (const one of documents.filter(({ kind }) => kind === 'Deployment')) {
    assert.ok(one.spec.replicas > 0)
    const { metadata, spec } = patched(one, 'deploy/keda/scaled')
    assert.equal('replicas' in spec, !scaled.has(metadata.name), metadata.name)
  }
})

test('the example of an Ingress fits the schema, and leads to a port of the API', async () => {
  const [ingress] = documentsOf(textOf('deploy/kubernetes/overlays/single-region/ingress.example.yaml'))
  assert.deepEqual(await schemaProblems(ingress), [])
  const { service } = ingress.spec.rules[0].http.paths[0].backend
  const { spec } = named(base.documents, 'Service', service.name)
  assert.ok(spec.ports.some(({ name }: Json) => name === service.port.name))
})

test('a fleet without Redis starts with an empty key, and one without an authority of its own without that secret', async () => {
  const { volumes } = named(base.documents, 'Deployment', 'worker-books').spec.template.spec
  const { sources } = volumes.find(({ name }: Json) => name === 'secrets').projected
  const given = sources.flatMap(({ secret }: Json) =>
    secret.items.map(({ path }: Json) => [path, secret.optional ?? false]),
  )
  // To name a file that is missing is an error; what is in an empty one counts as not said.
  assert.deepEqual(Object.fromEntries(given), { frontier: false, store: false, redis: false, 'ca/ca.crt': true })
  using folder = temporaryFolder()
  const file = join(folder.path, 'redis')
  writeFileSync(file, '')
  const told = (SLUICE_REDIS_FILE: string) => resolveConfig({ cwd: folder.path, env: { SLUICE_REDIS_FILE } })
  assert.equal((await told(file)).values.redis, undefined)
  await assert.rejects(told(`${file}-missing`), /cannot be read/)
})

test('what lies in scratch on its way fits: every process with four files of the largest size', () => {
  for (const folder of FOLDERS)
    for (const { kind, metadata, spec } of build(folder).documents) {
      if (kind !== 'Deployment') continue
      const { containers, volumes } = spec.template.spec
      const { args, resources } = containers[0]
      const flag = (name: string) => args[args.indexOf(name) + 1] as string
      const sizeOf = (name: string) =>
        parseBytes(`${volumes.find((one: Json) => one.name === name).emptyDir.sizeLimit}B`)
      const inAll = sizeOf('tmp') + sizeOf('scratch')
      assert.ok(parseBytes(`${resources.limits['ephemeral-storage']}B`) >= inAll, metadata.name)
      if (!args.includes('--file-workers')) continue
      assert.ok(sizeOf('scratch') >= Number(flag('--file-workers')) * 4 * parseBytes(flag('--file-max')), metadata.name)
    }
})

test('the type of the task protocol needs nobody to turn it on', async () => {
  const { documents } = build('deploy/kubernetes/overlays/task-protocol')
  const [{ args }] = named(documents, 'Deployment', 'worker-type').spec.template.spec.containers
  const type = args[args.indexOf('--type') + 1]
  const { default: scraper } = await import(`../scrapers/jobs/${type}/${type}.ts`)
  assert.deepEqual([scraper.name, scraper.optIn], [type, undefined])
  assert.notEqual(indeed.optIn, undefined)
})

test('a manifest with a wrong type, an unknown name or an unknown kind is refused', async () => {
  const api = named(base.documents, 'Deployment', 'api')
  assert.deepEqual(await schemaProblems(api), [])
  const wrong = { ...api, spec: { ...api.spec, replicas: 'two' } }
  assert.match((await schemaProblems(wrong)).join(), /replicas must be integer/)
  api.spec.template.spec.containers[0].livenessProb = {}
  assert.match((await schemaProblems(api)).join(), /livenessProb is not in the schema/)
  assert.match((await schemaProblems({ ...api, kind: 'Deploiment' })).join(), /there is no Deploiment/)
})

test('what is wrong with a Deployment is seen', async () => {
  const cases: [(pod: Json, container: Json) => void, RegExp][] = [
    [(_, container) => (container.image = 'sluice:latest'), /no target/],
    [(_, container) => container.args.push('--colour'), /does not take --colour/],
    [(_, container) => container.env.push({ name: 'SLUICE_COLOUR', value: 'red' }), /no option/],
    [(_, container) => (container.ports[0].containerPort = 8080), /nobody listens on 8080/],
    [(_, container) => (container.livenessProbe.httpGet.path = '/healthz'), /livenessProbe asks \/healthz/],
    [(_, container) => (container.readinessProbe.httpGet.path = '/livez'), /readinessProbe asks \/livez/],
    [(_, container) => delete container.resources.limits, /no limits/],
    [(_, container) => (container.resources.limits.memory = '200Mi'), /too little to grow/],
    [(_, container) => (container.securityContext.readOnlyRootFilesystem = false), /not hardened/],
    [(pod) => (pod.securityContext.runAsUser = 0), /not hardened/],
    [(pod) => (pod.terminationGracePeriodSeconds = 30), /too short/],
    [(_, container) => (container.env = container.env.filter(({ name }: Json) => name !== 'SLUICE_METRICS')), /probes/],
  ]
  for (const [spoil, expected] of cases) {
    const worker = named(base.documents, 'Deployment', 'worker-books')
    spoil(worker.spec.template.spec, worker.spec.template.spec.containers[0])
    assert.match((await deploymentProblems(worker, optionsOf(base.documents))).join(), expected)
  }
  const worker = named(base.documents, 'Deployment', 'worker-books')
  worker.spec.template.spec.volumes[0].projected.sources[0].secret.items.push({ key: 'password', path: 'password' })
  assert.match(
    referenceProblems([worker], SECRETS).join(),
    /no ServiceAccount sluice.*no ConfigMap sluice-options.*no secret/s,
  )
})

test('services, budgets and policies choose pods that exist', () => {
  for (const folder of FOLDERS) {
    const { documents } = build(folder)
    const pods: Json[] = documents.filter(({ kind }) => kind === 'Deployment').map(({ spec }) => spec.template)
    const choose = (labels: Json) =>
      pods.filter((pod) => Object.entries(labels).every(([name, value]) => pod.metadata.labels[name] === value))
    for (const { kind, metadata, spec } of documents) {
      if (kind === 'PodDisruptionBudget') assert.equal(choose(spec.selector.matchLabels).length, 1, metadata.name)
      if (kind === 'NetworkPolicy') assert.notEqual(choose(spec.podSelector.matchLabels ?? {}).length, 0, metadata.name)
      if (kind !== 'Service') continue
      const chosen = choose(spec.selector)
      assert.notEqual(chosen.length, 0, metadata.name)
      for (const { targetPort, port } of spec.ports)
        for (const pod of chosen) {
          const [listened] = pod.spec.containers[0].ports
          assert.deepEqual([listened.name, listened.containerPort], [targetPort, port], metadata.name)
        }
    }
  }
})

test('everything is denied first, and nobody who fetches reaches private addresses', () => {
  const policies = base.documents.filter(({ kind }) => kind === 'NetworkPolicy')
  assert.deepEqual(policies[0].spec, { podSelector: {}, policyTypes: ['Ingress', 'Egress'] })
  const rules = policies.flatMap(({ metadata, spec }) => (spec.egress ?? []).map((rule: Json) => [metadata.name, rule]))
  const open = rules.filter(([, { to }]) =>
    to.some(({ ipBlock }: Json) => /^(?:0\.0\.0\.0|::)\/0$/.test(ipBlock?.cidr)),
  )
  assert.deepEqual(
    open.map(([name, { ports }]) => [name, ports?.map(({ port }: Json) => port)]),
    [
      ['web', undefined],
      ['api-web', [80, 443]],
    ],
  )
  for (const [name, { to }] of open) {
    const exceptOf = (cidr: string) => to.find(({ ipBlock }: Json) => ipBlock.cidr === cidr).ipBlock.except
    for (const range of ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16'])
      assert.ok(exceptOf('0.0.0.0/0').includes(range), name)
    for (const range of ['fc00::/7', 'fe80::/10']) assert.ok(exceptOf('::/0').includes(range), name)
  }
})

test('PostgreSQL is reached directly and through PgBouncer', () => {
  const { spec } = named(base.documents, 'NetworkPolicy', 'servers')
  const ports = spec.egress[0].ports.map(({ port }: Json) => port)
  assert.ok(ports.includes(5432) && ports.includes(6432))
})

test('the example of the secrets has no values, and workers are not given the key of the API', () => {
  for (const { stringData } of SECRETS) for (const value of Object.values(stringData)) assert.equal(value, '')
  for (const { kind, metadata, spec } of base.documents)
    if (kind === 'Deployment' && spec.template.metadata.labels['sluice/kind'] === 'worker')
      assert.doesNotMatch(JSON.stringify(spec), /api-key/, metadata.name)
})
