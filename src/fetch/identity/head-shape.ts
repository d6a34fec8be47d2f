/**
 * Writes request headers the way browsers do. undici adds `host`, `connection` and `content-length` itself, in lower case and at
 * a fixed position; all other headers are sent as given. Only for identities with a browser profile.
 */
import type { Socket } from 'node:net'
import type { Profile } from './profiles.ts'

const HEAD = /^[A-Z]+ \S+ HTTP\/1\.1\r\n/

export function shapeHeads(socket: Socket, profile: Profile): void {
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean
  socket.write = ((data: unknown, ...rest: unknown[]) =>
    write(typeof data === 'string' && HEAD.test(data) ? shapeHead(data, profile) : data, ...rest)) as Socket['write']
}

function shapeHead(head: string, { connectionBefore }: Pick<Profile, 'connectionBefore'>): string {
  const lines = head.split('\r\n')
  const fields = lines.slice(1, -2).map(titled)
  const at = fields.findIndex((line) => line.startsWith('Connection:'))
  if (connectionBefore !== undefined && at !== -1) {
    const [connection] = fields.splice(at, 1)
    const before = fields.findIndex((line) => connectionBefore.includes(line.slice(0, line.indexOf(':'))))
    fields.splice(before === -1 ? fields.length : before, 0, connection!)
  }
  return [lines[0], ...fields, '', ''].join('\r\n')
}

function titled(line: string): string {
  if (line.startsWith('host:')) return `H${line.slice(1)}`
  if (line.startsWith('connection:')) return `C${line.slice(1)}`
  return line.startsWith('content-length:') ? `Content-Length${line.slice('content-length'.length)}` : line
}
