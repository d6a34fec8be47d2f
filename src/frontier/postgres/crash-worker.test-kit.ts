/** A process for the crash test. */
import { crawlUntilDone } from '../crash-site.test-kit.ts'
import { openPostgresFrontier } from './engine.ts'

const [url, pages] = process.argv.slice(2)
{
  await using frontier = await openPostgresFrontier(url!, { runId: 'crash' })
  await crawlUntilDone(frontier, Number(pages))
}
process.disconnect?.()
