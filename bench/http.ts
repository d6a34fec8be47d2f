/**
 * What our transport costs compared with bare undici dispatch: same run, same loopback server in another process, body collected.
 *
 *   node bench/http.ts [seconds per slice, default 0.25] [body bytes, default 10240]
 *
 * The two alternate in short slices, so that a busy machine affects both alike; the figure is the median of the ratios.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { type Dispatcher, Pool } from 'undici'
import { openHttp } from '../src/fetch/http/http.ts'

const SLICE_SECONDS = Number(process.argv[2] ?? 0.25)
const BODY_BYTES = Number(process.argv[3] ?? 10_240)
const IN_FLIGHT = 64
const ROUNDS = 21

/** Answers every request with the same bytes; recognises requests by their blank line only. */
async function serve(): Promise<void> {
  const body = '<html><p>text</p>'.repeat(BODY_BYTES).slice(0, BODY_BYTES)
  const head = `HTTP/1.1 200 OK\r\nDate: Fri, 01 Jan 2027 00:00:00 GMT\r\nServer: bench\r\nCache-Control: no-cache\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: ${body.length}\r\n\r\n`
  const answer = Buffer.from(head + body)
  const server = createServer((socket: Socket) => {
    socket.setNoDelay(true)
    socket.on('data', (data) => data.subarray(-4).toString('latin1') === '\r\n\r\n' && socket.write(answer))
    socket.on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  process.send?.((server.address() as { port: number }).port)
  process.on('disconnect', () => process.exit())
}

/** The least a client can do: collect the chunks, count them, resolve. */
function bareDispatch(pool: Pool): Promise<number> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart() {},
      onResponseStart() {},
      onResponseData: (_controller, chunk) => void chunks.push(chunk),
      onResponseEnd: () => resolve((chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)).length),
      onResponseError: (_controller, error) => reject(error),
    }
    const headers = ['user-agent', 'bench', 'accept', '*/*', 'accept-language', 'en', 'accept-encoding', 'gzip']
    pool.dispatch({ path: '/page/1', method: 'GET', headers }, handler)
  })
}

async function measure(request: () => Promise<number>): Promise<{ perCpuSecond: number; perSecond: number }> {
  const endsAtMs = performance.now() + SLICE_SECONDS * 1000
  let done = 0
  const cpu = process.cpuUsage()
  const startedAtMs = performance.now()
  const worker = async () => {
    while (performance.now() < endsAtMs) {
      if ((await request()) !== BODY_BYTES) throw new Error('a body of another length')
      done++
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker))
  const { user, system } = process.cpuUsage(cpu)
  return { perCpuSecond: done / ((user + system) / 1e6), perSecond: done / ((performance.now() - startedAtMs) / 1000) }
}

async function main(): Promise<void> {
  const server = fork(import.meta.filename, ['serve', String(BODY_BYTES)])
  const [port] = (await once(server, 'message')) as [number]
  const url = `http://127.0.0.1:${port}/page/1`
  const pool = new Pool(new URL(url).origin, { connections: IN_FLIGHT, allowH2: false })
  const { signal } = new AbortController()
  await using http = openHttp({
    userAgent: 'bench',
    timeoutMs: 30_000,
    connectTimeoutMs: 10_000,
    bodyBytesMax: 16 * 1024 ** 2,
    redirectsMax: 10,
    connectionsPerHost: IN_FLIGHT,
    retryAfterMsMax: 3_600_000,
    allowPrivate: true,
    allowAddresses: [],
  })
  const ours = async () => (await http.exchange({ url }, signal)).body.length
  const slices: { bare: number; ours: number; share: number; oursWall: number }[] = []
  for (let round = -3; round < ROUNDS; round++) {
    const bare = await measure(() => bareDispatch(pool))
    const own = await measure(ours)
    if (round < 0) continue // warm up
    const share = own.perCpuSecond / bare.perCpuSecond
    slices.push({ bare: bare.perCpuSecond, ours: own.perCpuSecond, share, oursWall: own.perSecond })
  }
  console.log(`requests per CPU-second, ${BODY_BYTES} byte pages, ${IN_FLIGHT} in flight (oursWall: per second)`)
  console.table(
    (['bare', 'ours', 'share', 'oursWall'] as const).map((figure) => {
      const sorted = slices.map((slice) => slice[figure]).sort((a, b) => a - b)
      const at = (part: number) => Number(sorted[Math.floor(part * (sorted.length - 1))]!.toPrecision(3))
      return { figure, low: at(0.1), median: at(0.5), high: at(0.9) }
    }),
  )
  await pool.close()
  server.disconnect()
}

if (process.argv[2] === 'serve') await serve()
else await main()
