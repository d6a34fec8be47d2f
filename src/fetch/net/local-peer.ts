/**
 * Whose process is at the other end of a connection over loopback. A port of 127.0.0.1 is open to every user of the machine, and
 * Chromium sends a proxy no password without intercepting each request; but Linux knows whose socket it is. Other processes of
 * our own user are let in: they could read our memory as well.
 */
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { endianness } from 'node:os'

/** 127.0.0.1, as the machine keeps it in memory. */
const LOOPBACK = endianness() === 'LE' ? '0100007F' : '7F000001'
const OWN_UID = process.getuid?.()

/** True where the system does not tell (not Linux): then loopback is all the protection there is. */
export function isOwnPeer(socket: Socket): boolean {
  const { remoteAddress, remotePort, localPort } = socket
  if (OWN_UID === undefined || remoteAddress !== '127.0.0.1') return OWN_UID === undefined
  let table: string
  try {
    // 60 µs for some hundred connections; the five trips to the thread pool of a `readFile` took longer.
    table = readFileSync('/proc/self/net/tcp', 'latin1')
  } catch {
    return true
  }
  const at = table.indexOf(` ${addressOf(remotePort!)} ${addressOf(localPort!)} `)
  if (at === -1) return false // gone already
  const line = table.slice(at, table.indexOf('\n', at)).trim().split(/ +/)
  // Its end of the connection, our end, state, queues, timer, retransmissions, and then whose it is.
  return Number(line[6]) === OWN_UID
}

/** 127.0.0.1:PORT as /proc/net/tcp spells it. */
function addressOf(port: number): string {
  return `${LOOPBACK}:${port.toString(16).toUpperCase().padStart(4, '0')}`
}
