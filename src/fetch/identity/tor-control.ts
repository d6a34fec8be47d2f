/** The control connection of a Tor daemon: one command at a time, and Tor exits when the connection closes. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { ScrapeError } from '../../core/errors.ts'

export interface TorControl {
  /** The value of one key. */
  getInfo(key: string): Promise<string>
  signal(name: 'NEWNYM'): Promise<void>
  /** Closes the connection, which makes Tor exit. */
  close(): void
}

const ANSWER_MS_MAX = 5000

/** Authenticates with the cookie only we can read, and takes ownership: Tor exits when this connection ends, however we die. */
export async function openTorControl(port: number, cookieFile: string): Promise<TorControl> {
  const socket = connect(port, '127.0.0.1')
  socket.setEncoding('latin1')
  await once(socket, 'connect').catch((error: Error) => {
    throw controlError(`Tor’s control port ${port}: ${error.message}`)
  })
  const waiting: { lines: string[]; settle: (answer: string[] | ScrapeError) => void }[] = []
  socket.on('error', () => {}) // 'close' follows
  socket.on('close', () => {
    for (const { settle } of waiting.splice(0)) settle(controlError('Tor is gone'))
  })
  createInterface({ input: socket, crlfDelay: Number.POSITIVE_INFINITY }).on('line', (line) => {
    const asked = waiting[0]
    if (asked === undefined) return
    asked.lines.push(line)
    if (!/^\d{3} /.test(line)) return // `250-…` is continued
    waiting.shift()
    asked.settle(line.startsWith('250') ? asked.lines : controlError(`Tor says: ${line}`))
  })

  const ask = (command: string) =>
    new Promise<string[]>((resolve, reject) => {
      if (socket.destroyed) return reject(controlError('Tor is gone'))
      const timer = setTimeout(() => socket.destroy(), ANSWER_MS_MAX)
      const settle = (answer: string[] | ScrapeError) => {
        clearTimeout(timer)
        if (waiting.length === 0) socket.unref()
        if (answer instanceof ScrapeError) reject(answer)
        else resolve(answer)
      }
      waiting.push({ lines: [], settle })
      socket.ref()
      return socket.write(`${command}\r\n`, 'latin1')
    })

  try {
    await ask(`AUTHENTICATE ${readFileSync(cookieFile).toString('hex')}`)
    await ask('TAKEOWNERSHIP')
  } catch (error) {
    socket.destroy()
    throw error
  }
  return {
    async getInfo(key) {
      const [line = ''] = await ask(`GETINFO ${key}`)
      return line.slice(line.indexOf('=') + 1)
    },
    async signal(name) {
      await ask(`SIGNAL ${name}`)
    },
    close: () => socket.destroy(),
  }
}

function controlError(message: string): ScrapeError {
  return new ScrapeError('E_PROXY', message)
}
