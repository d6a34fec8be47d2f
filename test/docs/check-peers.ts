/** Code of other products, as pages show it beside ours: parsed, but not run. */
import { spawnSync } from 'node:child_process'
import type { Block } from './blocks.ts'

const PARSE: Readonly<Record<string, readonly [string, ...string[]]>> = {
  python: ['python3', '-c', 'import ast, sys; ast.parse(sys.stdin.read())'],
  js: [process.execPath, '--input-type=module', '--check', '-'],
}

export function peerProblems(blocks: readonly Block[]): string[] {
  return blocks.flatMap(({ kind, page, line, text }) => {
    const [program, ...args] = PARSE[kind] ?? []
    if (program === undefined) return [`${page}:${line}: nobody can parse ${kind || 'no kind'}`]
    const { status, stderr } = spawnSync(program, args, { input: text, encoding: 'utf8' })
    return status === 0 ? [] : [`${page}:${line}: ${stderr}`]
  })
}
