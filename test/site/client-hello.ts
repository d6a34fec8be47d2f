/** Parses a TLS ClientHello (RFC 8446, 4.1.2), by which servers distinguish clients. */

export interface ClientHello {
  /** Without GREASE. */
  ciphers: number[]
  /** Without GREASE. */
  extensions: number[]
  /** Protocols offered by ALPN. */
  protocols: string[]
  /** Reserved values without a meaning (RFC 8701), which Chromium- and WebKit-based browsers insert. */
  hasGrease: boolean
}

const ALPN = 16
const isGrease = (value: number) => (value & 0x0f0f) === 0x0a0a && value >> 8 === (value & 0xff)

/** `record` is the first flight as received; it must contain the complete lists. */
export function readClientHello(record: Buffer): ClientHello {
  let at = 5 + 4 + 2 + 32 // record, handshake, version, random
  at += 1 + record[at]! // session
  const cipherBytes = record.readUInt16BE(at)
  const ciphers = Array.from({ length: cipherBytes / 2 }, (_, i) => record.readUInt16BE(at + 2 + i * 2))
  at += 2 + cipherBytes
  at += 1 + record[at]! // compression
  const extensions: number[] = []
  const protocols: string[] = []
  const end = Math.min(record.length, at + 2 + record.readUInt16BE(at))
  for (at += 2; at + 4 <= end; at += 4 + record.readUInt16BE(at + 2)) {
    const type = record.readUInt16BE(at)
    extensions.push(type)
    if (type === ALPN) protocols.push(...readNames(record.subarray(at + 6, at + 4 + record.readUInt16BE(at + 2))))
  }
  const all = [...ciphers, ...extensions]
  const known = (values: number[]) => values.filter((value) => !isGrease(value))
  return { ciphers: known(ciphers), extensions: known(extensions), protocols, hasGrease: all.some(isGrease) }
}

function* readNames(list: Buffer): Generator<string> {
  for (let at = 0; at < list.length; at += 1 + list[at]!) yield list.toString('latin1', at + 1, at + 1 + list[at]!)
}
