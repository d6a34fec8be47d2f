/**
 * Finds out which user owns the process at the other end of a loopback connection. A port on 127.0.0.1 is open to every user of
 * the machine, and Chromium cannot send a proxy password without intercepting each request; but Linux knows who owns the socket.
 * Other processes of our own user are allowed: they could read our memory anyway.
 */
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { endianness } from 'node:os'

/** 127.0.0.1 in the machine's byte order. */
const LOOPBACK = endianness() === 'LE' ? '0100007F' : '7F000001'
const OWN_UID = process.getuid?.()

/** True where the system does not say (anything but Linux): there, listening on loopback is the only protection. */
export function isOwnPeer(socket: Socket): boolean {
  const { remoteAddress, remotePort, localPort } = socket
  if (OWN_UID === undefined || remoteAddress !== '127.0.0.1') return OWN_UID === undefined
  let table: string
  try {
    // 60 µs for a few hundred connections; `readFile` takes longer, with its five trips to the thread pool.
    table = readFileSync('/proc/self/net/tcp', 'latin1')
  } catch {
    return true
  }
  const at = table.indexOf(` ${addressOf(remotePort!)} ${addressOf(localPort!)} `)
  if (at === -1) return false // gone already
  const line = table.slice(at, table.indexOf('\n', at)).trim().split(/ +/)
  // The fields: remote address, local address, state, queues, timer, retransmissions, and then the owner's uid.
  return Number(line[6]) === OWN_UID
}

/** 127.0.0.1:PORT as written in /proc/net/tcp. */
function addressOf(port: number): string {
  return `${LOOPBACK}:${port.toString(16).toUpperCase().padStart(4, '0')}`
}
