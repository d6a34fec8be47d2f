/** Writes docs/reference/*.md from the code. With `--check` it writes nothing and fails if a page is out of date. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { VERDICTS } from '../src/cli/explain.ts'
import { EXIT_CODES } from '../src/cli/print-error.ts'
import { API_ERRORS, ERRORS, type ErrorKind } from '../src/core/error-table.ts'
import { METRICS, type MetricSpec } from '../src/observe/metrics-table.ts'
import { cliPage } from './reference-cli.ts'
import { libraryPage } from './reference-library.ts'
import { messageSchemas, messagesPage } from './reference-messages.ts'
import { optionsPage } from './reference-options.ts'
import { restPage } from './reference-rest.ts'
import { markdownTable, NOTE, page, sentence } from './reference-text.ts'

/** Path under docs/reference → content. */
export async function referencePages(): Promise<Record<string, string>> {
  return {
    'cli.md': await cliPage(),
    'rest.md': restPage(),
    'library.md': libraryPage(),
    'errors.md': errorsPage(),
    'options.md': optionsPage(),
    'metrics.md': metricsPage(),
    'messages.md': messagesPage(),
    ...messageSchemas(),
  }
}

function errorsPage(): string {
  const kinds = Object.entries(ERRORS as Record<string, ErrorKind>)
  return page([
    '# Errors',
    NOTE,
    'A code says what happened, its verdict what is done about it, its class groups it in metrics and dead letters. `sluice explain CODE` shows the same in a terminal.',
    '## Verdicts',
    markdownTable(
      ['verdict', 'what it means'],
      Object.entries(VERDICTS).map(([name, text]) => [`\`${name}\``, text]),
    ),
    '## Exit codes',
    markdownTable(
      ['code', 'meaning'],
      Object.entries(EXIT_CODES).map(([code, text]) => [`\`${code}\``, text]),
    ),
    '## Codes',
    markdownTable(
      ['code', 'class', 'verdict', 'what'],
      kinds.map(([code, kind]) => [`[\`${code}\`](#${code.toLowerCase()})`, kind.class, kind.verdict, kind.what]),
    ),
    ...kinds.map(([code, kind]) => {
      const tries = kind.triesMax === undefined ? '' : `, at most ${kind.triesMax} tries`
      return `### ${code}\n\n${sentence(kind.what)} (class \`${kind.class}\`, verdict \`${kind.verdict}\`${tries})\n\n- **Why:** ${kind.why}\n- **Fix:** ${kind.fix}`
    }),
    '## Codes of the API',
    'The `code` of a problem response is one of the codes above, or one of these. They end a request, not a page or a run.',
    markdownTable(
      ['code', 'status', 'what'],
      Object.entries(API_ERRORS).map(([code, { status, what }]) => [
        `[\`${code}\`](#${code.toLowerCase()})`,
        String(status),
        what,
      ]),
    ),
    ...Object.entries(API_ERRORS).map(
      ([code, { status, what, why, fix }]) =>
        `### ${code}\n\n${sentence(what)} (status ${status})\n\n- **Why:** ${why}\n- **Fix:** ${fix}`,
    ),
  ])
}

function metricsPage(): string {
  const rows = (prefix: string) =>
    Object.entries(METRICS as Record<string, MetricSpec>)
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, spec]) => [
        `\`${name}\``,
        spec.type,
        spec.labels.map((label) => `\`${label}\``).join(', ') || '–',
        spec.help,
      ])
  const head = ['metric', 'type', 'labels', 'what it counts']
  return page([
    '# Metrics',
    NOTE,
    '`sluice run NAME --metrics :9090` serves them at `http://127.0.0.1:9090/metrics`. Base units; no URL or run id is ever a label. The metrics of the process and of Node (`process_*`, `nodejs_*`) are there too.',
    markdownTable(head, rows('sluice_')),
    '## Names of the Go books scraper',
    'The same numbers under the names its dashboards know.',
    markdownTable(head, rows('scraper_')),
  ])
}

/** Names of the pages whose file differs from the generated text. */
export async function outdatedPages(folder: string): Promise<string[]> {
  const outdated: string[] = []
  for (const [name, content] of Object.entries(await referencePages())) {
    const found = await readFile(join(folder, name), 'utf8').catch(() => undefined)
    if (found !== content) outdated.push(name)
  }
  return outdated
}

export async function writePages(folder: string): Promise<void> {
  for (const [name, content] of Object.entries(await referencePages())) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), content)
  }
}

if (import.meta.main) {
  const folder = join(import.meta.dirname, '..', 'docs', 'reference')
  if (process.argv.includes('--check')) {
    const outdated = await outdatedPages(folder)
    if (outdated.length > 0) {
      console.error(`out of date: ${outdated.map((name) => `docs/reference/${name}`).join(', ')}`)
      console.error('  fix: node scripts/reference.ts')
      process.exitCode = 1
    }
  } else await writePages(folder)
}
