/**
 * What `npm pack` and `npm publish` run before and after (`prepack`, `postpack`): builds `dist/`, replaces our manifest with the
 * package's, and restores it. In the repository the entries are TypeScript, which Node does not load from `node_modules`.
 * npm packs the current folder, so the swap is unavoidable, but it can be undone at any time. Ours is saved as `package.json.tmp`
 * (ignored by git) before it is replaced, both by renaming. The package's manifest keeps these two scripts, which do not run on
 * install: if npm was killed in between, the next `npm pack` starts by restoring ours.
 */
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, DIST, type Manifest, packaged } from './build.ts'

const MANIFEST = join(import.meta.dirname, '..', 'package.json')
const KEPT = `${MANIFEST}.tmp`

async function stage(): Promise<void> {
  restore()
  await build()
  const ours = readFileSync(MANIFEST, 'utf8')
  replace(KEPT, ours)
  replace(MANIFEST, stagedOf(ours))
}

function restore(): void {
  if (existsSync(KEPT)) {
    if (readFileSync(MANIFEST, 'utf8') !== stagedOf(readFileSync(KEPT, 'utf8')))
      throw new Error(
        `package.json was changed while it was that of the package: ours is ${KEPT}; bring them together by hand`,
      )
    renameSync(KEPT, MANIFEST)
  }
  rmSync(DIST, { recursive: true, force: true })
}

function stagedOf(ours: string): string {
  const manifest = JSON.parse(ours) as Manifest
  return `${JSON.stringify({ ...packaged(manifest, './dist'), scripts: manifest.scripts }, null, 2)}\n`
}

function replace(path: string, text: string): void {
  writeFileSync(`${path}.new.tmp`, text)
  renameSync(`${path}.new.tmp`, path)
}

const step = process.argv[2]
if (step === 'stage') await stage()
else if (step === 'restore') restore()
else throw new Error('node scripts/pack.ts stage|restore')
