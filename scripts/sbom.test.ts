/** The bill of materials says what the lockfile installs for a user, no more and no less, under licences that may be passed on. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { licenceOf, makeBill } from './sbom.ts'

/** Each may be used in a program of another licence, with its notice kept. */
const ALLOWED = new Set(['MIT', 'ISC', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD', 'BlueOak-1.0.0', 'CC0-1.0', 'Python-2.0', 'Unlicense']) // biome-ignore format: one line reads better

interface Locked {
  version: string
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
  peerDependenciesMeta?: Record<string, { optional?: boolean }>
}

/** What Node would find, from the dependencies of the package on: not by npm's marks, which the bill is made from. */
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

/** The nearest `node_modules` that has it. */
function placeOf(packages: Record<string, Locked>, from: string, name: string): string | undefined {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    const place = folder === '' ? `node_modules/${name}` : `${folder}/node_modules/${name}`
    if (place in packages) return place
    if (folder === '') return undefined
  }
}

test('the bill lists exactly the production packages of the lockfile, with licences of the list', () => {
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

/** One of several is enough where they are a choice. */
const isAllowed = (licence: string) =>
  licence.split(' AND ').every((part) =>
    part
      .replace(/[()]/g, '')
      .split(' OR ')
      .some((one) => ALLOWED.has(one)),
  )

test('a licence that is not of the list is noticed', () => {
  assert.equal(isAllowed('GPL-3.0-only'), false)
  assert.equal(isAllowed(''), false)
  assert.equal(isAllowed('MIT AND GPL-2.0'), false)
  assert.equal(isAllowed('(MIT OR GPL-3.0)'), true)
})
