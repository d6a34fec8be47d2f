/** Keeps a worker within its machine's resources: a monitor, and pool and batch sizes that follow it. */
import type { EventBus } from '../../core/events.ts'
import type { BrowserPool } from '../../fetch/browser/pool.ts'
import type { KeptBatch } from '../../fleet/scaling-keep.ts'
import type { WorkerFiles } from './worker-files.ts'

interface WorkerResourcesParts {
  workerId: string
  browsers: BrowserPool | undefined
  pagesMax: number
  /** Pages waiting for a browser. */
  pagesWaiting: () => number
  /** A function, because the file side is created later; it starts this object. */
  files: () => WorkerFiles
  fileWorkersMax: number
  /** Batch size for claims on an idle machine. */
  batch: number
  memoryReserveBytes: number
  /** A folder on the disk to watch. */
  folder: string
  bus: EventBus
}

export interface WorkerResources extends AsyncDisposable {
  /** Current batch size for claims. */
  claimMax(): number
  /** Starts watching the machine. May be called twice. */
  begin(): void
}

/** Memory per additional one: `docs/how-to/tune-browsers-and-downloads.md` has the figures. */
const PAGE_BYTES = 80 * 2 ** 20
export const FILE_WORKER_BYTES = 80 * 2 ** 20

/** Watches nothing before `begin`: a worker that only fetches pages has no pool to size, and pays for none. */
export function openWorkerResources(parts: WorkerResourcesParts): WorkerResources {
  const opened = new DisposableStack()
  let batch: KeptBatch | undefined
  let beginning: Promise<void> | undefined
  return {
    claimMax: () => batch?.size() ?? parts.batch,
    begin() {
      beginning ??= watchMachine(parts, opened).then((kept) => {
        batch = kept
      })
    },
    async [Symbol.asyncDispose]() {
      await beginning
      opened.dispose()
    },
  }
}

async function watchMachine(parts: WorkerResourcesParts, opened: DisposableStack): Promise<KeptBatch | undefined> {
  const { workerId, browsers, files, bus } = parts
  const [{ openResourceMonitor }, { RESOURCE_POLICY }, { SIZE_POLICY }, { keepBatch, keepSized }] = await Promise.all([
    import('../../fleet/resources.ts'),
    import('../../fleet/resources-policy.ts'),
    import('../../fleet/scaling.ts'),
    import('../../fleet/scaling-keep.ts'),
  ])
  const monitor = opened.use(openResourceMonitor({ disk: parts.folder }))
  const policy = { ...RESOURCE_POLICY, memoryReserveBytes: parts.memoryReserveBytes }
  if (browsers !== undefined) {
    opened.use(
      keepSized({
        what: 'browser-pages',
        policy: { ...SIZE_POLICY, max: parts.pagesMax },
        need: { bytesPerWorker: PAGE_BYTES, policy },
        look: () => ({ size: browsers.slots, busy: browsers.busy, queued: parts.pagesWaiting() }),
        resize: (slots) => browsers.resize(slots),
        monitor,
        events: bus,
      }),
    )
  }
  opened.use(
    keepSized({
      what: 'file-workers',
      policy: { ...SIZE_POLICY, max: parts.fileWorkersMax },
      need: { bytesPerWorker: FILE_WORKER_BYTES, policy },
      look: () => fileLoad(files()),
      resize: (workers) => files().pool?.resize(workers),
      monitor,
      events: bus,
    }),
  )
  opened.defer(
    monitor.onSample(() => {
      const pages = browsers && { pagesOpen: browsers.busy, pagesFree: Math.max(0, browsers.slots - browsers.busy) }
      bus.emit({ type: 'pools', workerId, ...pages, fileWorkers: files().pool?.workers ?? 0 })
    }),
  )
  return browsers && opened.use(keepBatch({ base: parts.batch, monitor, events: bus }))
}

/** A process counts as busy when it has all the jobs it may have. Before the first file, one idle process is assumed. */
export function fileLoad({ pool, waiting }: Pick<WorkerFiles, 'pool' | 'waiting'>) {
  if (pool === undefined) return { size: 1, busy: 0, queued: 0 }
  const { workers, capacity, busy } = pool
  return { size: workers, busy: Math.min(workers, Math.floor((busy * workers) / capacity)), queued: waiting }
}
