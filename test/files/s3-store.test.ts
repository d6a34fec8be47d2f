/** The bucket store, on a real S3-compatible server. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3'
import type { ScrapeError } from '../../src/core/errors.ts'
import { openFileStore } from '../../src/files/open-store.ts'
import { parseS3Url } from '../../src/files/s3-store.ts'
import { testFileStore } from '../../src/files/store-conformance.test-kit.ts'
import { type S3Server, startS3 } from '../services/s3.ts'

let s3: S3Server
let client: S3Client
const folder = mkdtempSync(join(tmpdir(), 'sluice-s3-'))
const never = new AbortController().signal

before(async () => {
  s3 = await startS3()
  Object.assign(process.env, s3.env)
  client = new S3Client({ endpoint: s3.endpoint, region: 'us-east-1', forcePathStyle: true })
})
after(async () => {
  client.destroy()
  await s3[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

testFileStore('a bucket', async () => ({
  open: () => openFileStore(s3.url('some/prefix')),
  async read(where) {
    const key = decodeURI(where.slice(`s3://${s3.bucket}/`.length))
    const { Body } = await client.send(new GetObjectCommand({ Bucket: s3.bucket, Key: key }))
    return Buffer.from(await Body!.transformToByteArray())
  },
  list: async () => s3.files().filter((name) => !name.includes('_S3rver_uploads')),
}))

test('ends the run if the bucket does not exist, without a secret in the message', async () => {
  await using store = await openFileStore(`s3://no-such-bucket/x?endpoint=${s3.endpoint}&region=us-east-1`)
  const path = join(folder, 'file')
  writeFileSync(path, 'x')
  const putting = store.put({ path, key: 'a/b.txt', contentType: 'text/plain', bytes: 1 }, never)
  await assert.rejects(putting, (error: ScrapeError) => {
    assert.equal(error.code, 'E_OUTPUT')
    assert.match(error.message, /NoSuchBucket/)
    assert.doesNotMatch(JSON.stringify(error) + error.stack, /S3RVER/)
    return true
  })
})

test('waits for a server that is down', async () => {
  await using store = await openFileStore('s3://bucket/x?endpoint=http://127.0.0.1:9&region=us-east-1')
  const path = join(folder, 'file')
  writeFileSync(path, 'x')
  const putting = store.put({ path, key: 'a/b.txt', contentType: 'text/plain', bytes: 1 }, never)
  await assert.rejects(putting, (error: ScrapeError) => error.code === 'E_FILE_STORE' && error.verdict === 'later')
  await assert.rejects(store.has('s3://bucket/x/a', 1), (error: ScrapeError) => error.code === 'E_FILE_STORE')
})

test('finds files below a prefix with a space again', async () => {
  await using store = await openFileStore(s3.url('some%20prefix'))
  const path = join(folder, 'file')
  writeFileSync(path, 'x')
  const where = await store.put({ path, key: 'a/b.txt', contentType: 'text/plain', bytes: 1 }, never)
  assert.ok(where.startsWith(store.place), `${where} is below ${store.place}`)
  assert.equal(await store.has(where, 1), true)
})

test('treats a bucket that does not reveal its content as one without it', async () => {
  const { createServer: createHttpServer } = await import('node:http')
  await using closed = createHttpServer((_request, response) => void response.writeHead(403).end())
  await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve))
  const { port } = closed.address() as AddressInfo
  await using store = await openFileStore(`s3://bucket/x?endpoint=http://127.0.0.1:${port}&region=us-east-1`)
  assert.equal(await store.has('s3://bucket/x/a', 1), false)
})

/** Forwards everything and records the requests: this server itself cannot abort an upload. */
async function startObserver(
  endpoint: string,
): Promise<AsyncDisposable & { endpoint: string; next(line: RegExp): Promise<void> }> {
  let seen = ''
  let look = () => {}
  const server = createServer((client) => {
    const upstream = connect(Number(new URL(endpoint).port), '127.0.0.1')
    client.on('data', (chunk: Buffer) => {
      for (const line of chunk.toString('latin1').match(/^[A-Z]+ \/\S* HTTP\/1\.1/gm) ?? []) seen += `${line}\n`
      look()
    })
    client.pipe(upstream).pipe(client)
    for (const socket of [client, upstream]) socket.on('error', () => [client, upstream].map((one) => one.destroy()))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    next: (line) =>
      new Promise((resolve) => {
        look = () => line.test(seen) && resolve()
        look()
      }),
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

test('aborts an upload on the server that is given up half-way', async () => {
  await using observer = await startObserver(s3.endpoint)
  await using store = await openFileStore(`s3://${s3.bucket}/x?endpoint=${observer.endpoint}&region=us-east-1`)
  const path = join(folder, 'large')
  const bytes = 40 * 1024 ** 2
  writeFileSync(path, Buffer.alloc(bytes))
  const given = new AbortController()
  const putting = store.put({ path, key: 'a/large.bin', contentType: 'text/plain', bytes }, given.signal)
  await observer.next(/^PUT .*partNumber=2/m)
  given.abort(new Error('given up'))
  await assert.rejects(putting, /given up/)
  await observer.next(/^DELETE .*uploadId=/m)
})

test('reads everything but the credentials from the URL', () => {
  const place = parseS3Url('s3://bucket/a/b?endpoint=https://minio.example:9000&region=eu-west-1&pathStyle=false')
  assert.deepEqual(place, { bucket: 'bucket', prefix: 'a/b/', endpoint: 'https://minio.example:9000', region: 'eu-west-1', isPathStyle: false }) // biome-ignore format: one line reads better
  for (const bad of ['s3:///x', 's3://key:secret@bucket/x', 's3://bucket/?acl=public', 's3://bucket?endpoint=host'])
    assert.throws(
      () => parseS3Url(bad),
      (error: ScrapeError) => error.code === 'E_OPTION' && !error.message.includes('secret'),
      bad,
    )
})
