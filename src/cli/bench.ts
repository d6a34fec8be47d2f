/** `sluice bench`: speed and memory on this machine. */
import type { Command } from 'commander'
import type { BenchResult } from '../app/bench/bench.ts'
import { addReadFlags, print, printJson, type ReadFlags } from './output.ts'

interface BenchFlags extends ReadFlags {
  pages: string
  concurrency: string
}

const HELP = `
Scrapes a shop that it serves itself on loopback, pages of 8 kB, into JSONL and CSV in a temporary folder. The site runs on the same
machine and uses part of it. Use the numbers to compare machines; real sites are slower, and you should be, too.

Examples:
  sluice bench
  sluice bench --pages 20000 --concurrency 64 --json`

export function defineBench(program: Command): void {
  const command = program
    .command('bench')
    .description('measure speed and memory of a scrape on this machine')
    .option('--pages <N>', 'pages to scrape', '3000')
    .option('--concurrency <N>', 'requests in flight', '16')
    .addHelpText('after', HELP)
    .action(bench)
  addReadFlags(command, 'the figures')
}

async function bench(flags: BenchFlags): Promise<void> {
  const { bench } = await import('../app/bench/bench.ts')
  const [pages, concurrency] = [
    await wholeOf('--pages', flags.pages, 1_000_000),
    await wholeOf('--concurrency', flags.concurrency, 1000),
  ]
  const isShown = process.stderr.isTTY && !flags.quiet && !flags.json
  const onProgress = (done: number) => void process.stderr.write(`\r${done} of ${pages} pages`)
  const result = await bench({ pages, concurrency, ...(isShown ? { onProgress } : {}) })
  if (isShown) process.stderr.write('\r\u001b[K')
  if (flags.json) printJson(result)
  else print(await textOf(result))
}

async function wholeOf(flag: string, text: string, max: number): Promise<number> {
  if (/^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= max) return Number(text)
  const { ScrapeError } = await import('../core/errors.ts')
  throw new ScrapeError('E_USAGE', `${flag} takes a whole number from 1 to ${max}, got ${JSON.stringify(text)}`)
}

async function textOf({ machine, ...run }: BenchResult): Promise<string> {
  const { formatBytes: bytes, formatCount: count, formatMs: ms, table } = await import('./style.ts')
  const lines = [
    [
      'machine',
      `${machine.cores} cores, ${machine.cpu}, ${bytes(machine.memoryBytes)}, load ${machine.loadBefore} before`,
    ],
    ['sluice', `${machine.version} on Node ${machine.node}`],
    ['pages', `${count(run.pages)} in ${run.seconds.toFixed(2)} s, ${run.concurrency} in flight, ${bytes(run.bytes)}`],
    ['speed', `${count(run.pagesPerSecond)} pages/s`],
    ['CPU', `${run.cpuMsPerPage} ms a page`],
    ['latency', `p50 ${ms(run.latencyMs.p50)} · p95 ${ms(run.latencyMs.p95)}`],
    ['memory', `${bytes(run.rssBytesMax)} at most`],
  ]
  return table(lines)
}
