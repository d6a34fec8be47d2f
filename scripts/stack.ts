/**
 * `make stack`: everything that docker-compose.yml starts with the profiles `full` and `obs`, as local processes, and an
 * end-to-end job through it. QUEUE=amqp|redis|postgres, WORKERS, BOOKS and RPS change it; KEEP=1 leaves it running; TURN_CLOCK=1
 * does not wait for the minute of the schedule.
 */
import { startBooksSite } from '../test/site/books.ts'
import { startGallery } from './stack/gallery.ts'
import { lastLines, runJob } from './stack/job.ts'
import { type Queue, Stack } from './stack/stack.ts'
import { addressTable, jobTable, serviceTable } from './stack/tables.ts'

const QUEUES: readonly Queue[] = ['amqp', 'redis', 'postgres']
const PROGRESS_MS = 5_000

class Stopped extends Error {
  override readonly name = 'Stopped'
}

function settings() {
  const named = process.env['QUEUE'] || 'amqp'
  const queue = QUEUES.find((one) => one === named)
  if (queue === undefined) throw new Error(`QUEUE takes ${QUEUES.join(', ')}, got ${named}`)
  return {
    queue,
    workers: numberFrom('WORKERS', 2),
    books: numberFrom('BOOKS', 1000),
    rps: numberFrom('RPS', 50),
    isKept: isOn('KEEP'),
    turnsClock: isOn('TURN_CLOCK'),
  }
}

function numberFrom(name: string, otherwise: number): number {
  const value = Number(process.env[name] || otherwise)
  if (Number.isSafeInteger(value) && value >= 1) return value
  throw new Error(`${name} takes a whole number from 1 on, got ${process.env[name]}`)
}

const isOn = (name: string) => !['', '0'].includes(process.env[name] ?? '')

/** Rejects on the first signal. */
function stopped(): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => {
      process.exitCode ??= signal === 'SIGINT' ? 130 : 143
      reject(new Stopped(`${signal}: stopping everything`))
    })
  promise.catch(() => {})
  return promise
}

/** On a terminal, progress is one line that is redrawn; elsewhere a line now and then. */
function speaker(startedAtMs: number) {
  const isTerminal = process.stdout.isTTY === true
  const seconds = () => `${((performance.now() - startedAtMs) / 1000).toFixed(1).padStart(6)} s`
  const say = (line: string) => console.log(`${isTerminal ? '\r\x1b[K' : ''}${seconds()}  ${line}`)
  let saidAtMs = performance.now()
  const progress = (line: string) => {
    if (isTerminal) return void process.stdout.write(`\r\x1b[K${seconds()}  ${line}`)
    if (performance.now() - saidAtMs < PROGRESS_MS) return
    saidAtMs = performance.now()
    say(line)
  }
  return { say, progress }
}

async function main(): Promise<void> {
  const { queue, workers, books, rps, isKept, turnsClock } = settings()
  const startedAtMs = performance.now()
  const { say, progress } = speaker(startedAtMs)
  const end = stopped()
  let delayMs = 0
  await using site = await startBooksSite({ products: books, delayMs: () => delayMs })
  const slowDown = (ms: number) => {
    delayMs = ms
  }
  await using gallery = await startGallery()
  await using stack = new Stack({ queue, workers, sites: [new URL(site.url).host, gallery.host], say })
  const work = async () => {
    const readyMs = performance.now() - startedAtMs
    const result = await runJob(stack, {
      site,
      gallery,
      books,
      rps,
      scale: [5, 1],
      turnsClock,
      slowDown,
      say,
      progress,
    })
    const wholeMs = performance.now() - startedAtMs
    say('all checks passed')
    console.log(`\n${serviceTable(stack)}\n\n${jobTable(result, { queue, readyMs, wholeMs })}\n`)
  }
  await Promise.race([stack.start(), end])
  try {
    await Promise.race([work(), end])
  } catch (error) {
    if (!(error instanceof Stopped)) showLogs(stack)
    throw error
  }
  if (!isKept) return
  console.log(`${addressTable(stack)}\n\nIt runs until Ctrl-C.`)
  await end.catch(() => say('stopping everything'))
  process.exitCode = 0 // the expected end
}

/** Logs of processes that ended unexpectedly; if there are none, of all our own. */
function showLogs(stack: Stack): void {
  const fallen = stack.fallen()
  for (const { name, port, log } of fallen.length > 0 ? fallen : stack.ours())
    console.error(`\n── the last lines of ${name} (port ${port}) ──\n${lastLines(log)}`)
}

const stays = setInterval(() => {}, 60_000) // the servers do not keep this process alive
try {
  await main()
} catch (error) {
  console.error(`\n${error instanceof Stopped ? error.message : `error: ${(error as Error).message}`}`)
  process.exitCode ??= 1
} finally {
  clearInterval(stays)
  process.exit() // processes that are still starting die with their owner
}
