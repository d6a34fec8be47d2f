/** The manifests: they fit the schemas of Kubernetes, are all listed, and name only what exists. No cluster is needed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { documentsOf, type Json, textOf } from './checks.ts'
import { build, deploymentProblems, kustomizations, referenceProblems, schemaProblems } from './kubernetes-checks.ts'

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
}

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
    [(_, container) => (container.livenessProbe.httpGet.path = '/alive'), /livenessProbe asks \/alive/],
    [(_, container) => delete container.resources.limits, /no limits/],
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
  worker.spec.template.spec.volumes[0].secret.items.push({ key: 'password', path: 'password' })
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
  const blocks = policies
    .flatMap(({ spec }) => (spec.egress ?? []).flatMap(({ to }: Json) => to))
    .filter(({ ipBlock }) => ipBlock)
  assert.equal(blocks.length, 3)
  for (const { ipBlock } of blocks.filter(({ ipBlock }) => ipBlock.cidr === '0.0.0.0/0'))
    for (const range of ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16'])
      assert.ok(ipBlock.except.includes(range))
})

test('the example of the secrets has no values, and workers are not given the key of the API', () => {
  for (const { stringData } of SECRETS) for (const value of Object.values(stringData)) assert.equal(value, '')
  for (const { kind, metadata, spec } of base.documents)
    if (kind === 'Deployment' && spec.template.metadata.labels['sluice/kind'] === 'worker')
      assert.doesNotMatch(JSON.stringify(spec), /api-key/, metadata.name)
})
