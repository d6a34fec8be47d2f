/** A test proxy in front of PostgreSQL: it can lose an answer, so that the client does not know whether its request arrived. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface CuttingProxy extends AsyncDisposable {
  /** URL of the same database, through the proxy. */
  readonly url: string
  /** Answers lost so far. */
  readonly cuts: number
  /** The next message with this text reaches the server; its answer is lost, along with the connection. */
  loseAnswerTo(text: string): void
}

export async function cuttingProxy(url: string): Promise<CuttingProxy> {
  const target = new URL(url)
  const sockets = new Set<Socket>()
  let wanted: string | undefined
  let cuts = 0
  const proxy = createServer((client) => {
    const server = connect(Number(target.port), target.hostname)
    let isCutting = false
    const destroyBoth = () => {
      client.destroy()
      server.destroy()
    }
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.on('error', destroyBoth)
      socket.on('close', () => {
        sockets.delete(socket)
        destroyBoth()
      })
    }
    client.on('data', (data) => {
      if (wanted !== undefined && data.includes(wanted)) {
        wanted = undefined
        isCutting = true
      }
      server.write(data)
    })
    server.on('data', (data) => {
      if (!isCutting) client.write(data)
      else if (isCutting) {
        cuts++
        destroyBoth()
      }
    })
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const through = new URL(url)
  through.port = String((proxy.address() as AddressInfo).port)
  return {
    url: through.href,
    get cuts() {
      return cuts
    },
    loseAnswerTo(text) {
      wanted = text
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      proxy.close()
      await once(proxy, 'close')
    },
  }
}
