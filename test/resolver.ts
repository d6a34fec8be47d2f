/**
 * A resolver for tests of whole commands: load it with `NODE_OPTIONS=--import=…`. Names under `.inside.test` resolve to private
 * addresses, each in another way; nothing else resolves.
 */
import dns from 'node:dns'

const ANSWERS: Readonly<Record<string, readonly string[]>> = {
  'loopback.inside.test': ['127.0.0.1'],
  'mapped.inside.test': ['::ffff:127.0.0.1'],
  'mixed.inside.test': ['93.184.215.14', '127.0.0.1'],
  'metadata.inside.test': ['169.254.169.254'],
  localhost: ['127.0.0.1'],
}

dns.lookup = ((hostname: string, _options: unknown, callback: (error: Error | null, found: unknown[]) => void) => {
  const found = ANSWERS[hostname]?.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
  if (found === undefined) callback(Object.assign(new Error(`no ${hostname} here`), { code: 'ENOTFOUND' }), [])
  else callback(null, found)
}) as typeof dns.lookup
