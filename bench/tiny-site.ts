/** A site of tiny pages, each with its own URL: the cost per page when reading it costs next to nothing. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const delayMs = Number(process.argv[2] ?? 0)
const server = createServer((request, response) => {
  const answer = () => {
    const isPage = request.url!.startsWith('/p/')
    response.writeHead(isPage ? 200 : 404, { 'content-type': 'text/html; charset=utf-8' })
    response.end(isPage ? `<!doctype html><title>${request.url!.slice(3)}</title>` : '')
  }
  if (delayMs > 0) setTimeout(answer, delayMs)
  else answer()
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}/\n`)
})
process.stdin.on('end', () => process.exit()).resume() // ends with its parent
