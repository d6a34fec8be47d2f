/** A broken middlebox for tests: between a client and a server it drops, repeats or cuts the server's responses now and then. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export type Garbling = 'drop' | 'repeat' | 'cut'
const GARBLINGS: readonly Garbling[] = ['drop', 'repeat', 'cut']

export interface GarblingProxy extends AsyncDisposable {
  readonly port: number
  /** How often it has done so. */
  readonly garbled: number
  /** Nothing happens before; afterwards about one response in `every` is garbled. */
  begin(options: { every: number; random: () => number }): void
  end(): void
  /** Resets all current connections. */
  cut(): void
}

export async function garblingProxy(port: number): Promise<GarblingProxy> {
  const sockets = new Set<Socket>()
  let garbled = 0
  let plan: { every: number; random: () => number } | undefined
  const garble = (data: Buffer): Buffer => {
    if (plan === undefined || plan.random() >= 1 / plan.every) return data
    garbled++
    const how = GARBLINGS[Math.floor(plan.random() * GARBLINGS.length)]!
    if (how === 'drop') return Buffer.alloc(0)
    if (how === 'repeat') return Buffer.concat([data, data])
    const at = Math.floor(plan.random() * data.length)
    const length = 1 + Math.floor(plan.random() * 40)
    return Buffer.concat([data.subarray(0, at), data.subarray(at + length)])
  }
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1')
    const close = () => {
      near.destroy()
      far.destroy()
    }
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', close)
      socket.on('close', () => {
        sockets.delete(socket)
        close()
      })
    }
    near.on('data', (data) => far.write(data))
    far.on('data', (data: Buffer) => near.write(garble(data)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    get garbled() {
      return garbled
    },
    begin(options) {
      plan = options
    },
    end() {
      plan = undefined
    },
    cut() {
      for (const socket of sockets) socket.resetAndDestroy()
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** The same random numbers for the same seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
