/**
 * The software bill of materials: every package that a user of Sluice gets, as CycloneDX, from the lockfile. `make sbom` writes
 * sbom.json.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024

export interface Component {
  'bom-ref': string
  name: string
  version: string
  purl: string
  licenses?: { license?: { id?: string; name?: string }; expression?: string }[]
}

export interface Bill {
  bomFormat: string
  specVersion: string
  metadata: { component: Component }
  components: Component[]
  dependencies: { ref: string; dependsOn?: string[] }[]
}

interface Lockfile {
  packages: Record<string, { version: string; dev?: boolean }>
}

/**
 * Without npm's own `--omit dev`, which also omits packages that a development tool uses: it omitted `pg` and its dependencies.
 * And npm names the project after its folder, while the bill is for the package.
 */
export function makeBill(): Bill {
  const args = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only']
  const text = execFileSync('npm', args, {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: OUTPUT_BYTES_MAX,
    stdio: ['ignore', 'pipe', 'pipe'], // npm's messages are in the error
  })
  const bill = JSON.parse(text) as Bill
  const { name } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as { name: string }
  const { packages } = JSON.parse(readFileSync(`${ROOT}package-lock.json`, 'utf8')) as Lockfile
  const given = Object.entries(packages).filter(([path, { dev }]) => path !== '' && dev !== true)
  const known = new Set(given.map(([path, { version }]) => `${path.replace(/^.*node_modules\//, '')}@${version}`))
  bill.components = bill.components.filter((one) => known.has(`${one.name}@${one.version}`))
  const refs = new Set([bill.metadata.component['bom-ref'], ...bill.components.map((one) => one['bom-ref'])])
  bill.dependencies = bill.dependencies
    .filter(({ ref }) => refs.has(ref))
    .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((one) => refs.has(one)) }))
  bill.metadata.component.name = name
  return bill
}

/** `MIT`, or several: `MIT OR CC0-1.0`. Empty if none is given. */
export function licenceOf({ licenses = [] }: Component): string {
  return licenses.map(({ license, expression }) => expression ?? license?.id ?? license?.name ?? '').join(' AND ')
}

if (import.meta.main) {
  const out = process.argv[2] ?? 'sbom.json'
  const bill = makeBill()
  writeFileSync(out, `${JSON.stringify(bill, null, 2)}\n`)
  process.stdout.write(`${out}: ${bill.components.length} packages (CycloneDX ${bill.specVersion})\n`)
}
