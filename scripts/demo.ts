/** `make demo`: serves the bundled book shop on this machine and scrapes it, including misbehaving pages. */
import { spawn } from 'node:child_process'
import { startBooksSite } from '../test/site/books.ts'

await using site = await startBooksSite({ products: 1000, misbehave: true })
console.log(
  `The demo shop is at ${site.url} (1,000 books on 50 pages; a few pages fail, stall or throttle on purpose).`,
)
const command = ['run', 'books', '--site', site.url, '--arg', 'details=true', '--rps', '0', ...process.argv.slice(2)]
console.log(`$ bin/sluice ${command.join(' ')}\n`)
const run = spawn('bin/sluice', command, { stdio: 'inherit' })
// Ctrl-C reaches the run as well; we exit once it has drained.
process.on('SIGINT', () => {})
process.exitCode = await new Promise<number>((resolve) => run.on('exit', (code) => resolve(code ?? 1)))
