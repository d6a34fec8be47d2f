/**
 * What `npm pack` and `npm publish` run before and after (`prepack`, `postpack`): build `dist/`, put the package's manifest in the
 * place of ours, and ours back. In the repository the entries are TypeScript; Node takes none from below `node_modules`.
 * npm packs the folder it stands in, so the swap cannot be avoided; it can be undone at any time. Ours is kept as
 * `package.json.tmp` (ignored by git) before it is replaced, both by renaming. When npm was killed in between, the next
 * `npm pack` begins with putting it back, and so does `node scripts/pack.ts restore`.
 */
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, DIST, type Manifest, packaged } from './build.ts'

const MANIFEST = join(import.meta.dirname, '..', 'package.json')
const KEPT = `${MANIFEST}.tmp`

function stage(): void {
  restore()
  build()
  const ours = readFileSync(MANIFEST, 'utf8')
  const theirs = packaged(JSON.parse(ours) as Manifest, './dist')
  writeFileSync(`${KEPT}.tmp`, ours)
  renameSync(`${KEPT}.tmp`, KEPT)
  const staged = `${MANIFEST}.staged.tmp`
  writeFileSync(staged, `${JSON.stringify(theirs, null, 2)}\n`)
  renameSync(staged, MANIFEST)
}

function restore(): void {
  if (existsSync(KEPT)) renameSync(KEPT, MANIFEST)
  rmSync(DIST, { recursive: true, force: true })
}

const step = process.argv[2]
if (step === 'stage') stage()
else if (step === 'restore') restore()
else throw new Error('node scripts/pack.ts stage|restore')
