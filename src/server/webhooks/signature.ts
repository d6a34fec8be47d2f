/** Standard Webhooks signatures: they prove to a receiver that a request is ours, recent and unaltered. */
import { createHmac, randomBytes } from 'node:crypto'

const PREFIX = 'whsec_'
const SECRET_BYTES = 32

export const newSecret = () => PREFIX + randomBytes(SECRET_BYTES).toString('base64')

interface Signed {
  /** Event id: the same in every try. */
  id: string
  atMs: number
  body: string
  /** During a secret rotation there are two, and a receiver accepts either. */
  secrets: readonly string[]
}

export function signedHeaders({ id, atMs, body, secrets }: Signed): Record<string, string> {
  const timestamp = Math.floor(atMs / 1000)
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(PREFIX.length), 'base64')
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
  })
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures.join(' '),
  }
}
