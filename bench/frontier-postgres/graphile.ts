/** graphile-worker on the same server: with its defaults, and with its local queue, which claims and completes in batches. */
import { Logger, makeWorkerUtils, runOnce } from 'graphile-worker'

const ADD_MAX = 1000
const silent = new Logger(() => () => {})

export async function addJobs(url: string, count: number): Promise<void> {
  const utils = await makeWorkerUtils({ connectionString: url, logger: silent })
  try {
    await utils.migrate()
    for (let at = 0; at < count; at += ADD_MAX) {
      const urls = Array.from({ length: Math.min(ADD_MAX, count - at) }, (_, i) => pageUrl(at + i))
      await utils.addJobs(urls.map((page) => ({ identifier: 'visit', payload: { url: page } })))
    }
  } finally {
    await utils.release()
  }
}

/** Processes everything. `batch` 0: its defaults. */
export async function workOff(url: string, batch: number): Promise<void> {
  const batched = { localQueue: { size: batch }, completeJobBatchDelay: 0, failJobBatchDelay: 0, concurrentJobs: 24 }
  await runOnce({
    connectionString: url,
    logger: silent,
    taskList: { visit: () => {} },
    preset: { worker: { concurrentJobs: 10, maxPoolSize: 11, ...(batch === 0 ? {} : batched) } },
  })
}

function pageUrl(n: number): string {
  return `https://www.host-0.example/products/category/${n}?page=${n % 10}`
}
