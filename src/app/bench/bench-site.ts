/** The site that `sluice bench` scrapes, run as a separate process: a shop with any number of products, generated on request. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Roughly the size of a small shop's product page. */
const FILLER = '<p>Kept dry, sent within two days, and taken back within thirty.</p>\n'.repeat(120)

const product = (id: string) =>
  `<!doctype html><title>Product ${id}</title><h1>Product ${id}</h1><p class="price">£${(Number(id) % 90) + 10}.50</p>${FILLER}`

const server = createServer((request, response) => {
  const path = request.url ?? '/'
  const id = /^\/product\/(\d+)$/.exec(path)?.[1]
  response.setHeader('content-type', id === undefined ? 'text/plain' : 'text/html; charset=utf-8')
  if (id === undefined) response.statusCode = 404
  response.end(id === undefined ? 'no such page\n' : product(id))
})
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  process.send!({ url: `http://127.0.0.1:${port}/` })
})
process.on('disconnect', () => process.exit(0))
