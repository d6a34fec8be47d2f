/** What the docs name exists: files behind links, headings behind anchors, commands, their flags, and error codes. */
import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { defineCommands } from '../src/cli/commands.ts'
import { EVERY_ERROR } from '../src/core/error-table.ts'
import { NOT_FETCHED } from '../src/core/not-fetched.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PAGES = globSync(['*.md', '{docs,test,templates,scrapers}/**/*.md'], { cwd: ROOT }).sort()
const textOf = (page: string) => readFileSync(join(ROOT, page), 'utf8')
const placeIn = (page: string, text: string, index: number) => `${page}:${text.slice(0, index).split('\n').length}`

const LINK = /\]\(([^)\s]+)\)|<img[^>]+src="([^"]+)"/g

/** Code is blanked out, so that lines keep their numbers. */
function withoutCode(text: string): string {
  return text
    .replace(/^```[\s\S]*?^```$/gm, (block) => block.replace(/[^\n]/g, ' '))
    .replace(/`[^`\n]*`/g, (code) => ' '.repeat(code.length))
}

/** GitHub's way from a heading to an anchor. */
function anchorsOf(text: string): Set<string> {
  const headings = [...text.replace(/^```[\s\S]*?^```$/gm, '').matchAll(/^#+ (.+)$/gm)]
  return new Set(
    headings.map(({ 1: heading }) =>
      heading!
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )
}

/** Code spans and lines of blocks: where commands stand. */
function codeOf(text: string): { code: string; index: number }[] {
  const found: { code: string; index: number }[] = []
  for (const { 0: block, index } of text.matchAll(/^```[\s\S]*?^```$/gm)) {
    let at = index
    for (const line of block.split('\n')) {
      found.push({ code: line.replace(/\s#\s.*$/, ''), index: at })
      at += line.length + 1
    }
  }
  const prose = text.replace(/^```[\s\S]*?^```$/gm, (block) => block.replace(/[^\n]/g, ' '))
  for (const { 1: code, index } of prose.matchAll(/`([^`\n]+)`/g)) found.push({ code: code!, index })
  return found
}

interface Mention {
  where: string
  words: string[]
  code: string
}

/** `sluice run shop --rps 0` → its words. Words in quotes are one. */
function mentionsIn(page: string): Mention[] {
  const text = textOf(page)
  return codeOf(text).flatMap(({ code, index }) =>
    [...code.matchAll(/(?:^|[\s;&|(]|bin\/)sluice ([a-z-][^|;&>]*)/g)].map(({ 1: rest }) => ({
      where: placeIn(page, text, index),
      words:
        rest!
          .replace(/ -- .*$|\)\..*$/, '')
          .trim()
          .match(/"[^"]*"|'[^']*'|\S+/g) ?? [],
      code,
    })),
  )
}

/** Why nobody could type this; undefined when they could. */
function problemOf({ where, words, code }: Mention, program: Command): string | undefined {
  let command = program
  for (const word of words) {
    const next = command.commands.find((known) => known.name() === word)
    if (next === undefined) break
    command = next
  }
  const isHelp = ['help', '--version', '--help'].includes(words[0]!)
  if (command === program && !isHelp) return `${where}: there is no command "${words[0]}" (${code})`
  if (command.commands.length > 0 && command !== program && words.length > 1)
    return `${where}: "${command.name()}" has no "${words[1]}" (${code})`
  const flags = isHelp ? [] : words.filter((word) => /^--?[a-z]/i.test(word)).map((word) => word.replace(/=.*$/, ''))
  const unknown = flags.find((flag) => !command.options.some(({ long, short }) => flag === long || flag === short))
  return unknown === undefined ? undefined : `${where}: "${command.name()}" has no ${unknown} (${code})`
}

/** Read by the command's own parser, without doing it. */
function whyRefused(line: string, program: Command): string | undefined {
  const typed = line.replace(/\s{2,}\S.*$|\s#\s.*$/, '').replace(/^.*?\bsluice (?=[a-z-])/, '')
  const words = /^[^|>&;]*/
    .exec(typed.replaceAll(/'[^']*'|"[^"]*"/g, 'quoted'))![0]
    .trim()
    .split(/\s+/)
  let command = program
  const next = () => command.commands.find((inner) => inner.name() === words[0])
  for (let inner = next(); inner !== undefined; inner = next()) {
    command = inner
    words.shift()
  }
  const { operands, unknown } = command.parseOptions(words)
  if (unknown.length > 0) return `${line}: unknown ${unknown.join(' ')}`
  const wanted = command.registeredArguments
  const least = wanted.filter(({ required }) => required).length
  const most = wanted.some(({ variadic }) => variadic) ? Number.POSITIVE_INFINITY : wanted.length
  const isFine = operands.length >= least && operands.length <= most && command.commands.length === 0
  return isFine ? undefined : `${line}: ${operands.length} words, takes ${least} to ${most}`
}

async function program(): Promise<Command> {
  const all = new Command('sluice')
  await defineCommands(all, undefined)
  return all
}

test('there are docs', () => {
  for (const page of [
    'README.md',
    'ARCHITECTURE.md',
    'CONTRIBUTING.md',
    'CHANGELOG.md',
    'SECURITY.md',
    'docs/tutorial.md',
  ])
    assert.ok(PAGES.includes(page), page)
})

test('every page is in the index of the docs', () => {
  const index = textOf('docs/README.md')
  const missing = PAGES.filter((page) => page.startsWith('docs/') && page !== 'docs/README.md').filter(
    (page) => !index.includes(`](${page.slice('docs/'.length)})`),
  )
  assert.deepEqual(missing, [], 'name them in docs/README.md')
})

test('every relative link leads to a file, and every anchor to a heading', () => {
  const broken: string[] = []
  for (const page of PAGES) {
    const text = textOf(page)
    for (const { 1: inLink, 2: inImage, index } of withoutCode(text).matchAll(LINK)) {
      const link = inLink ?? inImage!
      if (/^[a-z]+:/.test(link)) continue
      const [path, anchor] = link.split('#') as [string, string?]
      const target = path === '' ? join(ROOT, page) : resolve(ROOT, dirname(page), path)
      if (!existsSync(target)) broken.push(`${placeIn(page, text, index)}: ${link}`)
      else if (anchor !== undefined && !anchorsOf(readFileSync(target, 'utf8')).has(anchor))
        broken.push(`${placeIn(page, text, index)}: no heading for #${anchor} in ${path || page}`)
    }
  }
  assert.deepEqual(broken, [])
})

test('every file of the project that is named exists', () => {
  const missing: string[] = []
  for (const page of PAGES.filter((name) => !name.startsWith('templates/'))) {
    const text = textOf(page)
    for (const { code, index } of codeOf(text)) {
      for (const { 1: path } of code.matchAll(/(?:^|\s)((?:src|test|bench|scripts|docs)\/[\w./-]*\w)(?=\s|$)/g)) {
        const isPlaceholder = /NAME/.test(path!)
        if (!isPlaceholder && !existsSync(join(ROOT, path!))) missing.push(`${placeIn(page, text, index)}: ${path}`)
      }
    }
  }
  assert.deepEqual(missing, [])
})

test('every command and flag that is mentioned exists', async () => {
  const known = await program()
  const mentions = PAGES.flatMap(mentionsIn)
  assert.ok(mentions.length > 80, `only ${mentions.length} mentions found`)
  const problems = mentions.map((mention) => problemOf(mention, known)).filter((problem) => problem !== undefined)
  assert.deepEqual(problems, [])
})

test('every example of the help is taken by its command: flags with their values, and as many words as it wants', async () => {
  const known = await program()
  const text = textOf('docs/reference/cli.md')
  const lines = [...text.matchAll(/^Examples:\n\n```text\n([\s\S]*?)^```$/gm)].flatMap(([, block]) =>
    block!.split('\n'),
  )
  const examples = lines.filter((line) => /(?:^|\| )sluice /.test(line))
  assert.ok(examples.length > 80, `only ${examples.length} examples found`)
  assert.deepEqual(
    examples.map((line) => whyRefused(line, known)).filter((problem) => problem !== undefined),
    [],
  )
  assert.match(whyRefused('sluice run a b', known)!, /2 words/)
  assert.match(whyRefused('sluice explain E_USAGE --rps', known)!, /unknown/)
})

test('every error code that is mentioned exists', () => {
  const unknown: string[] = []
  for (const page of PAGES) {
    const text = textOf(page)
    for (const { 0: code, index } of text.matchAll(/\bE_[A-Z]+(?:_[A-Z]+)*\b/g)) {
      if (!Object.hasOwn(EVERY_ERROR, code)) unknown.push(`${placeIn(page, text, index)}: ${code}`)
    }
  }
  assert.deepEqual(unknown, [])
})

/** Left: how a translation says it. Right: how the docs do. */
const WORDS: readonly [RegExp, string][] = [
  [/\bwhoever\b/i, 'clients that, workers that'],
  [/\bin place of\b/i, 'instead of'],
  [/\bmend(?:s|ed|ing)?\b/i, 'fix'],
  [/\b(?:for|to|by|from) who\b/i, 'for users who'],
  [/\bsigns? of life\b/i, 'heartbeat'],
  [/\bunless told\b/i, 'the default is'],
  [/\bleft away\b/i, 'omitted'],
]

test('the docs use the words of the trade', () => {
  const found: string[] = []
  for (const page of PAGES.filter((name) => name !== 'CHANGELOG.md' && !name.startsWith('docs/reference/'))) {
    for (const [i, line] of withoutCode(textOf(page)).split('\n').entries())
      for (const [word, better] of WORDS)
        if (word.test(line)) found.push(`${page}:${i + 1}: ${word.exec(line)![0]} → ${better}`)
  }
  assert.deepEqual(found, [])
})

test('the table of reasons for not fetching lists every one, in order, with its warning', () => {
  const rows = textOf('docs/how-to/follow-links.md').matchAll(/^\| `([a-z-]+)` +\|.*\| (yes|) +\|$/gm)
  const listed = [...rows].map(([, reason, warning]) => [reason, warning === 'yes'])
  assert.deepEqual(
    listed,
    Object.entries(NOT_FETCHED).map(([reason, { isWarning }]) => [reason, isWarning]),
  )
})

test('a command or flag that does not exist is found', async () => {
  const known = await program()
  const of = (text: string) => problemOf({ where: 'x.md:1', words: text.split(' '), code: text }, known)
  assert.match(of('scrape books')!, /no command "scrape"/)
  assert.match(of('dlq revive books')!, /"dlq" has no "revive"/)
  assert.match(of('run books --speed 9')!, /"run" has no --speed/)
  assert.equal(of('run books --rps 0'), undefined)
  assert.equal(of('dlq retry books --class timeout'), undefined)
})
