/** A process for the crash test. */
import { crawlUntilDone } from '../crash-site.test-kit.ts'
import { openSqliteFrontier } from './engine.ts'

const [path, pages] = process.argv.slice(2)
await using frontier = await openSqliteFrontier(path!)
await crawlUntilDone(frontier, Number(pages))
