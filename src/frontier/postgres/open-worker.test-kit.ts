/** A process for the test of concurrent migration: opens the frontier along with nine others, adds a task, and exits. */
import { openPostgresFrontier } from './engine.ts'

if (process.argv[1] === import.meta.filename) {
  const [url, n] = process.argv.slice(2) as [string, string]
  await using frontier = await openPostgresFrontier(url, { runId: 'first' })
  await frontier.add([{ url: `https://a.example/${n}`, route: 'page', depth: 0 }])
}
