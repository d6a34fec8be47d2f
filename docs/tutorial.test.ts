/**
 * Does what the tutorial says, in its order, against a real demo shop.
 *
 *   ```sh, ```sh exit=4       run in bash, must end with this code (0 unless told)
 *   ```text after it          each line must come out, in this order; `…` stands for anything
 *   ```ts PATH                written to PATH
 *   ```diff PATH              the `-` line is replaced by the `+` line
 *   ```console                for people only: what the test has done already
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startBooksSite } from '../test/site/books.ts'
import { temporaryFolder } from '../test/sluice.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SHOP = 'http://127.0.0.1:4100/'
const KINDS = ['sh', 'text', 'ts', 'diff', 'console']

interface Block {
  kind: string
  /** What stands after the kind: a path, or `exit=N`. */
  word: string
  text: string
  line: number
}

test('the tutorial works as written', { timeout: 90_000 }, async () => {
  await using site = await startBooksSite({ products: 100 })
  using folder = temporaryFolder()
  const blocks = blocksOf(readFileSync(join(ROOT, 'docs/tutorial.md'), 'utf8').replaceAll(SHOP, site.url))
  assert.ok(blocks.filter(({ kind }) => kind === 'sh').length > 10, 'the tutorial has lost its commands')
  let cwd = folder.path
  let output = ''
  for (const { kind, word, text, line } of blocks) {
    const where = `docs/tutorial.md:${line}`
    if (kind === 'ts') write(join(cwd, word), text)
    else if (kind === 'diff') write(join(cwd, word), changed(readFileSync(join(cwd, word), 'utf8'), text, where))
    else if (kind === 'text') assertShown(output, text, where)
    else if (kind === 'sh') {
      const ended = await bash(text, cwd)
      const expected = Number(/^exit=(\d+)$/.exec(word)?.[1] ?? 0)
      assert.equal(ended.code, expected, `${where}\n${text}\n${ended.output}`)
      cwd = ended.cwd
      output = ended.output
    }
  }
})

function blocksOf(markdown: string): Block[] {
  return [...markdown.matchAll(/^```(\w+)[ \t]*(.*)\n([\s\S]*?)^```$/gm)].map(
    ({ index, 1: kind, 2: word, 3: text }) => {
      const line = markdown.slice(0, index).split('\n').length
      assert.ok(KINDS.includes(kind!), `docs/tutorial.md:${line}: nobody knows what to do with a block of ${kind}`)
      return { kind: kind!, word: word!, text: text!, line }
    },
  )
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

function changed(before: string, diff: string, where: string): string {
  const [, from, to] = /^-(.*)\n\+(.*)\n$/.exec(diff) ?? []
  assert.ok(from !== undefined && to !== undefined, `${where}: one line out, one line in`)
  assert.equal(before.split(`${from}\n`).length, 2, `${where}: the line is there once: ${from}`)
  return before.replace(`${from}\n`, () => `${to}\n`)
}

function assertShown(output: string, text: string, where: string): void {
  const lines = output.split('\n')
  let at = 0
  for (const expected of text.trimEnd().split('\n')) {
    const pattern = new RegExp(`^${expected.split('…').map(RegExp.escape).join('.*')}\\s*$`)
    const found = lines.findIndex((line, i) => i >= at && pattern.test(line))
    assert.notEqual(found, -1, `${where}: not shown, or not in this order: ${expected}\n--- output:\n${output}`)
    at = found + 1
  }
}

/** Ends at the first command that fails. The folder it ends in is where the next block begins. */
async function bash(script: string, cwd: string): Promise<{ code: number | null; output: string; cwd: string }> {
  const env = {
    ...process.env,
    PATH: `${join(ROOT, 'bin')}${delimiter}${process.env['PATH']}`,
    NO_COLOR: '1',
    NODE_TEST_CONTEXT: undefined,
  }
  const child = spawn('bash', ['-e', '-o', 'pipefail', '-c', `${script}\npwd >&3`], {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  const texts = ['', '', '']
  for (const [i, stream] of [child.stdout, child.stderr, child.stdio[3]!].entries()) {
    ;(stream as NodeJS.ReadableStream).setEncoding('utf8').on('data', (text: string) => {
      texts[i] += text
    })
  }
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  return { code, output: texts[0]! + texts[1]!, cwd: texts[2]!.trim() || cwd }
}
