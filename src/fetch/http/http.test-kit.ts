/** An HTTP client for tests of the chain: loopback is allowed, and timeouts are short. */
import { type HttpClient, openHttp } from './http.ts'

export function openTestHttp(): HttpClient {
  return openHttp({
    userAgent: 'SluiceTest/1.0',
    timeoutMs: 5000,
    connectTimeoutMs: 1000,
    bodyBytesMax: 1_000_000,
    redirectsMax: 5,
    connectionsPerHost: 2,
    retryAfterMsMax: 60_000,
    allowPrivate: true,
    allowAddresses: [],
  })
}
