/** The file side of a run in its own process, to be killed: `FOLDER DISK URL…`. Ends when nothing is left, or on an error. */
import { openFrontier } from '../../src/frontier/open.ts'
import { fileTask, startLoop } from './loop-rig.ts'

const [folder, disk, ...urls] = process.argv.slice(2)
const frontier = await openFrontier(`sqlite:${folder}/frontier.db`)
await frontier.sweep({ lossesMax: 1000, workerIds: 'all' })
await using rig = await startLoop({
  folder: folder!,
  workers: 2,
  retries: 20,
  parts: { frontier },
  orders: { store: `${disk}/store`, spool: `${disk}/spool` },
})
await rig.frontier.add(urls.map((url) => fileTask(url)))
await rig.finished()
const end = (await rig.frontier.stats()).remaining === 0 ? 'finished' : await rig.loop.ended
console.log(
  end === 'finished' ? end : end.how === 'halted' ? `halted: ${end.error.code} ${end.error.message}` : end.how,
)
await rig.stop()
await frontier[Symbol.asyncDispose]()
