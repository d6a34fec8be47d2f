/** A collector for tests: accepts OTLP/HTTP in JSON and keeps the spans. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface SeenSpan {
  name: string
  traceId: string
  spanId: string
  parentSpanId?: string
  links: { traceId: string; spanId: string }[]
  status: { code?: number; message?: string }
  attributes: Record<string, string | number | boolean>
  resource: Record<string, string | number | boolean>
}

interface KeyValue {
  key: string
  value: { stringValue?: string; intValue?: number; doubleValue?: number; boolValue?: boolean }
}

const plain = (list: KeyValue[]) =>
  Object.fromEntries(list.map(({ key, value }) => [key, Object.values(value)[0]])) as SeenSpan['attributes']

export async function startCollector(): Promise<AsyncDisposable & { url: string; spans: SeenSpan[] }> {
  const spans: SeenSpan[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const part of request.setEncoding('utf8')) body += part
    for (const { resource, scopeSpans } of JSON.parse(body).resourceSpans)
      for (const scope of scopeSpans)
        for (const span of scope.spans)
          spans.push({ ...span, attributes: plain(span.attributes), resource: plain(resource.attributes) })
    response.setHeader('content-type', 'application/json').end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
