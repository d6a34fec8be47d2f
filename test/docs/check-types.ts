/** Type-checks every TypeScript block against the sources in one compilation. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Block } from './blocks.ts'
import { ROOT } from './shell.ts'

/** Problems, each with the location of its block. */
export function typeProblems(blocks: readonly Block[]): string[] {
  mkdirSync(join(ROOT, '.deps'), { recursive: true })
  const folder = mkdtempSync(join(ROOT, '.deps/docs-types-')) // inside the project, where the packages are found
  try {
    const config = { extends: '../../tsconfig.json', compilerOptions: { noUnusedLocals: false }, include: ['*.ts'] }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
    for (const [i, block] of blocks.entries()) writeFileSync(join(folder, `block-${i}.ts`), wholeOf(block))
    const { stdout } = spawnSync(
      join(ROOT, 'node_modules/.bin/tsc'),
      ['-p', folder, '--pretty', 'false', '--singleThreaded'],
      {
        cwd: folder,
        encoding: 'utf8',
      },
    )
    return stdout
      .split('\n')
      .filter((line) => /^block-\d+\.ts/.test(line))
      .map((line) => line.replace(/^block-(\d+)\.ts/, (_, i) => `${blocks[i]!.page}:${blocks[i]!.line}`))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Each block is its own module, since two may use the same name. */
function wholeOf({ context = '…', text }: Block): string {
  const code = context.replace('…', () => text)
  return /^(?:import|export) /m.test(code) ? code : `${code}\nexport {}\n`
}
