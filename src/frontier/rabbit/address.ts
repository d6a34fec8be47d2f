/** The URL of a broker: parsing it, and showing it without secrets. */
import { ScrapeError } from '../../core/errors.ts'

/** Options of the frontier that may be in the broker's URL. The client library does not know them. */
export const FRONTIER_PARAMETERS = ['redis', 'ack', 'expired', 'prefetch', 'belt'] as const

/** AMQP URI parameters that the client library understands and that only affect timing and limits. */
export const CLIENT_PARAMETERS = ['heartbeat', 'connection_timeout', 'channel_max'] as const

/** Throws `E_OPTION` if it is not one. */
export function brokerUrl(text: string): URL {
  const url = URL.parse(text)
  if (url !== null && /^amqps?:$/.test(url.protocol)) return url
  throw new ScrapeError('E_OPTION', 'the URL of RabbitMQ is not one', {
    fix: 'For example amqp://user:password@localhost:5672/vhost; in a password / is %2F, # is %23, @ is %40 and ? is %3F.',
  })
}

export function portOf({ port, protocol }: URL): number {
  return Number(port || (protocol === 'amqps:' ? 5671 : 5672))
}

/** `host:port/vhost`, never with user or password. */
export function placeOf(text: string): string {
  const url = brokerUrl(text)
  return `${url.hostname || 'localhost'}:${portOf(url)}${url.pathname}`
}
