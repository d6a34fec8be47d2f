/** Starts a server, reports that, and stays until it is killed. `node owner-child.test-kit.ts` */
import { startPostgres } from './postgres.ts'

const server = await startPostgres()
console.log(JSON.stringify({ url: server.url, pid: server.pid }))
setInterval(() => {}, 60_000)
