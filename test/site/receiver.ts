/** A webhook receiver that remembers what it was sent. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Received {
  id: string
  headers: IncomingHttpHeaders
  body: string
  type: string
  data: Record<string, unknown>
}

/** Responds as configured; 0 means never. */
export class Receiver implements AsyncDisposable {
  readonly received: Received[] = []
  readonly #server: Server
  status: number | ((received: Received) => number) = 204
  headers: Record<string, string> = {}
  answer = ''

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(): Promise<Receiver> {
    const server = createServer(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      const { type, data } = JSON.parse(body)
      const one = { id: String(request.headers['webhook-id']), headers: request.headers, body, type, data }
      receiver.received.push(one)
      const status = typeof receiver.status === 'number' ? receiver.status : receiver.status(one)
      if (status !== 0) response.writeHead(status, receiver.headers).end(receiver.answer)
    })
    const receiver = new Receiver(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return receiver
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook`
  }

  get types(): string[] {
    return this.received.map(({ type }) => type)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
