/** The bill of materials lists exactly what the lockfile installs for a user, under licences that allow redistribution. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { licenceOf, makeBill } from './sbom.ts'

/** All of them allow use in a program under another licence if their notice is kept. */
const ALLOWED = new Set(['MIT', 'ISC', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD', 'BlueOak-1.0.0', 'CC0-1.0', 'Python-2.0', 'Unlicense']) // biome-ignore format: one line reads better

interface Locked {
  version: string
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
  peerDependenciesMeta?: Record<string, { optional?: boolean }>
}

/** What Node would resolve from the package's dependencies, independent of npm's flags, which the bill is generated from. */
function productionPackages(): string[] {
  const url = new URL('../package-lock.json', import.meta.url)
  const { packages } = JSON.parse(readFileSync(url, 'utf8')) as { packages: Record<string, Locked> }
  const found = new Map<string, string>()
  const visit = (path: string) => {
    const { dependencies, optionalDependencies, peerDependencies = {}, peerDependenciesMeta = {} } = packages[path]!
    const peers = Object.keys(peerDependencies).filter((name) => peerDependenciesMeta[name]?.optional !== true)
    for (const name of [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers]) {
      const place = placeOf(packages, path, name)
      if (place === undefined || found.has(place)) continue
      found.set(place, `${name}@${packages[place]!.version}`)
      visit(place)
    }
  }
  visit('')
  return [...new Set(found.values())].sort()
}

/** The nearest `node_modules` that contains it. */
function placeOf(packages: Record<string, Locked>, from: string, name: string): string | undefined {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    const place = folder === '' ? `node_modules/${name}` : `${folder}/node_modules/${name}`
    if (place in packages) return place
    if (folder === '') return undefined
  }
}

test('the bill lists exactly the production packages of the lockfile, with allowed licences', () => {
  const bill = makeBill()
  assert.deepEqual([bill.bomFormat, bill.metadata.component.name], ['CycloneDX', 'sluice'])
  const listed = [...new Set(bill.components.map(({ name, version }) => `${name}@${version}`))].sort()
  assert.ok(listed.length > 50)
  assert.deepEqual(listed, productionPackages())
  const odd = bill.components.filter((component) => !isAllowed(licenceOf(component)))
  assert.deepEqual(
    odd.map((component) => `${component.name}: ${licenceOf(component)}`),
    [],
  )
})

/** If there is a choice of licences, one allowed licence is enough. */
const isAllowed = (licence: string) =>
  licence.split(' AND ').every((part) =>
    part
      .replace(/[()]/g, '')
      .split(' OR ')
      .some((one) => ALLOWED.has(one)),
  )

test('notices a licence that is not allowed', () => {
  assert.equal(isAllowed('GPL-3.0-only'), false)
  assert.equal(isAllowed(''), false)
  assert.equal(isAllowed('MIT AND GPL-2.0'), false)
  assert.equal(isAllowed('(MIT OR GPL-3.0)'), true)
})
