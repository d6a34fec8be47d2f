/**
 * The server side of SOCKS5 (RFC 1928), as much of it as Chromium uses: no login, CONNECT only.
 *
 *   greeting ──▶ [5, 0] ──▶ request: where to ──▶ reply ──▶ bytes in both directions
 *
 * SOCKS rather than an HTTP proxy: plain HTTP passes through untouched, nothing is parsed twice, and WebSockets need no special
 * case. Host names arrive unresolved; Chromium resolves nothing itself.
 */
import type { Socket } from 'node:net'
import ipaddr from 'ipaddr.js'

export interface SocksTarget {
  /** IPv6 without brackets. */
  hostname: string
  port: number
}

/** The replies to Chromium, which reports the same error for both failures. */
type SocksReply = 'ok' | 'refused' | 'unreachable'
const REPLIES = { ok: 0, refused: 2, unreachable: 4 } as const

const VERSION = 5
const CONNECT = 1
const NOTHING = Buffer.alloc(0)
/** The longest request has a name of 255 bytes. */
const REQUEST_BYTES_MAX = 4 + 1 + 255 + 2

/** Undefined if the client disconnects or speaks another protocol. Bytes after the request stay in the socket. */
export function readSocksTarget(socket: Socket): Promise<SocksTarget | undefined> {
  return new Promise((resolve) => {
    let bytes: Buffer = NOTHING
    let isGreeted = false
    const end = (target: SocksTarget | undefined) => {
      socket.off('data', onData).off('close', onClose)
      socket.pause()
      if (target === undefined) socket.destroy()
      resolve(target)
    }
    const onClose = () => end(undefined)
    const onData = (chunk: Buffer) => {
      bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk])
      if (bytes[0] !== VERSION) return end(undefined)
      if (!isGreeted && bytes.length >= 2 && bytes.length >= 2 + bytes[1]!) {
        bytes = bytes.subarray(2 + bytes[1]!)
        isGreeted = true
        socket.write(Buffer.from([VERSION, 0]))
      }
      if (!isGreeted || bytes.length === 0) return bytes.length > REQUEST_BYTES_MAX ? end(undefined) : undefined
      const request = parseRequest(bytes)
      if (request === 'more') return undefined
      if (request === 'bad') return end(undefined)
      if (bytes.length > request.bytes) socket.unshift(bytes.subarray(request.bytes))
      return end(request)
    }
    socket.on('data', onData).on('close', onClose).resume()
  })
}

export function sendSocksReply(socket: Socket, reply: SocksReply): void {
  const bytes = Buffer.from([VERSION, REPLIES[reply], 0, 1, 0, 0, 0, 0, 0, 0])
  if (reply === 'ok') socket.write(bytes)
  else socket.end(bytes)
}

function parseRequest(bytes: Buffer): (SocksTarget & { bytes: number }) | 'more' | 'bad' {
  if (bytes.length < 5) return 'more'
  const [, command, , type, first] = bytes
  if (command !== CONNECT) return 'bad'
  const addressBytes = type === 1 ? 4 : type === 4 ? 16 : type === 3 ? first! + 1 : 0
  if (addressBytes === 0) return 'bad'
  const end = 4 + addressBytes
  if (bytes.length < end + 2) return 'more'
  const address = bytes.subarray(4, end)
  const hostname = type === 3 ? address.toString('latin1', 1) : ipaddr.fromByteArray([...address]).toString()
  return { hostname: hostname.replace(/^\[|\]$/g, ''), port: bytes.readUInt16BE(end), bytes: end + 2 }
}
