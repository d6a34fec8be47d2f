import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Command } from 'commander'
import { defineCommands } from '../src/cli/commands.ts'
import { EVERY_ERROR } from '../src/core/error-table.ts'
import { limitsSchema } from '../src/core/options.ts'
import { METRICS } from '../src/observe/metrics-table.ts'
import { MESSAGES } from '../src/protocol/messages.ts'
import { ENDPOINTS } from '../src/server/api/routes/endpoints.ts'
import { outdatedPages, referencePages, writePages } from './reference.ts'
import { ENTRIES, exportsOf } from './reference-library.ts'

test('the reference pages match the code', async () => {
  const folder = join(import.meta.dirname, '..', 'docs', 'reference')
  assert.deepEqual(await outdatedPages(folder), [], 'run: node scripts/reference.ts')
})

test('every error, option and metric is in the reference', async () => {
  const pages = await referencePages()
  for (const code of Object.keys(EVERY_ERROR)) assert.ok(pages['errors.md']!.includes(`### ${code}\n`), code)
  for (const name of Object.keys(METRICS)) assert.ok(pages['metrics.md']!.includes(`\`${name}\``), name)
  for (const name of Object.keys(limitsSchema.shape))
    assert.match(pages['options.md']!, new RegExp(`^\\| \`${name}[\`.]`, 'm'))
})

test('every option has a description and its values', async () => {
  const rows = (await referencePages())['options.md']!.split('\n').filter((line) => line.startsWith('| `'))
  assert.ok(rows.length > 15)
  for (const row of rows) {
    const [usual, values, what] = row.split(/ (?<!\\)\| ?/).slice(-4, -1)
    assert.ok(what!.trim().length > 5, row)
    assert.ok(usual!.length > 0 && values!.length > 0, row)
    assert.doesNotMatch(values!, /undefined|string/, row)
  }
})

test('every field of every message has a row, and every message a schema', async () => {
  const pages = await referencePages()
  for (const [name, schema] of Object.entries(MESSAGES)) {
    const { properties, required } = JSON.parse(pages[`messages/${name}.schema.json`]!)
    assert.deepEqual(Object.keys(properties), Object.keys(schema.shape), name)
    assert.ok(!required.includes('version'), 'a message that names no version is of the first')
    for (const field of Object.keys(properties)) assert.ok(pages['messages.md']!.includes(`| \`${field}\` |`), field)
  }
})

test('every command and every endpoint is in the reference', async () => {
  const pages = await referencePages()
  const program = new Command()
  await defineCommands(program, undefined)
  for (const { name } of program.commands.map((command) => ({ name: command.name() })))
    assert.ok(pages['cli.md']!.includes(`\n## sluice ${name}\n`), name)
  for (const { method, path } of Object.values(ENDPOINTS))
    assert.ok(pages['rest.md']!.includes(`\n### ${method} ${path.replace(/:(\w+)/g, '{$1}')}\n`), path)
})

test('every public name has a description, and the main entry stays small', () => {
  for (const [entry, file] of ENTRIES)
    for (const { name, words } of exportsOf(join(import.meta.dirname, '..', file)))
      assert.ok(words.length > 10, `${entry}: ${name} needs a comment in the code`)
  assert.ok(exportsOf(join(import.meta.dirname, '..', 'src/index.ts')).length <= 30)
})

test('the reference is plain English', async () => {
  const idiom =
    /\b(?:in place of|whoever|nobody|somebody|for who|go(?:es|ing)? on|mend|of (?:its|their|your) own|left (?:out|away)|unless told|as whom)\b|(?<!there )\b(?:is|are) no (?!longer|such)\w/i
  for (const [name, text] of Object.entries(await referencePages()))
    for (const line of text.split('\n')) assert.doesNotMatch(line, idiom, `${name}: say it in plain English`)
})

test('finds a page that differs', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-reference-'))
  try {
    assert.equal((await outdatedPages(folder)).length, Object.keys(await referencePages()).length)
    await writePages(folder)
    assert.deepEqual(await outdatedPages(folder), [])
    await writeFile(join(folder, 'errors.md'), 'old')
    assert.deepEqual(await outdatedPages(folder), ['errors.md'])
  } finally {
    await rm(folder, { recursive: true })
  }
})
