/** Owns a pool with one endless job, and prints the pid of its process. */
import { openFilePool } from '../../src/files/pool.ts'
import { downloadJob, ENTRY, never, orders } from './rig.ts'

const [folder, url] = process.argv.slice(2)
const pool = openFilePool({ entry: ENTRY, orders: orders(folder!), workers: 1, findStored: async () => undefined })
void pool.run(downloadJob(url!), never)
process.send!(pool.pids[0]!)
