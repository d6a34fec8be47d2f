/** A run in its own process, for a server: takes its orders, reports the run's id, and works until the run ends. */

import { resolveConfig } from '../../../config/config.ts'
import { loadScraper } from '../../../config/load-scraper.ts'
import { sendLast } from '../../../core/child.ts'
import { toScrapeError } from '../../../core/errors.ts'
import { findRun } from '../../../runs/run-folder.ts'
import { SERVER_GONE, SERVER_STOPPED } from '../../../runs/run-record.ts'
import { startRun } from '../../run/run.ts'

export interface RunOrders {
  scraper: string
  args: Record<string, unknown>
  /** The server's options, which override the environment. */
  flags: Record<string, unknown>
  /** Resume this run. */
  resume?: string
}

export type RunMessage =
  | { kind: 'started'; id: string }
  | { kind: 'refused'; code: string; message: string; notes: string[]; fix: string | undefined }

process.once('message', async (orders: RunOrders) => {
  try {
    const config = await resolveConfig({ flags: orders.flags })
    const { scraper, file } = await loadScraper(orders.scraper)
    const run = await startRun({
      scraper,
      file,
      config,
      args: orders.args,
      source: orders.scraper,
      isTrusted: false,
      isServed: true,
      resume: orders.resume === undefined ? undefined : findRun(config.values.out, orders.resume),
    })
    process.on('SIGTERM', () => run.stop(SERVER_STOPPED))
    process.on('disconnect', () => run.stop(SERVER_GONE))
    send({ kind: 'started', id: run.id })
    const { exitCode } = await run.result
    process.exit(exitCode ?? 0)
  } catch (error) {
    const { code, message, details } = toScrapeError(error, 'E_DEFINITION')
    sendLast({
      kind: 'refused',
      code,
      message,
      notes: [...(details.notes ?? [])],
      fix: details.fix,
    } satisfies RunMessage)
  }
})

function send(message: RunMessage): void {
  process.send?.(message)
}
