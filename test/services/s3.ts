/**
 * A bucket on an S3-compatible server (`@20minutes/s3rver`): a separate one in a process that can be stopped and restarted, with
 * its data in its own folder; or the one of `SLUICE_TEST_S3_URL`.
 *
 *   node test/services/s3.ts PORT FOLDER BUCKET     serves
 */
import { mkdirSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withFreePort } from './free-port.ts'
import { OwnedServer } from './owned-server.ts'

export interface S3Server extends AsyncDisposable {
  /** For `openFileStore`: `s3://BUCKET/PREFIX?endpoint=…`. */
  url(prefix: string): string
  readonly bucket: string
  readonly endpoint: string
  /** Every file the server has written for the bucket: objects, and parts of incomplete uploads. */
  files(): string[]
  /** Credentials for the SDK's usual chain. */
  readonly env: Readonly<Record<string, string>>
  stop(): Promise<void>
  start(): Promise<void>
}

const BUCKET = 'test-files'
const CREDENTIALS = { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' }

export async function startS3(): Promise<S3Server> {
  const server = new OwnedServer('s3')
  const start = async (port: number) => {
    const args = [fileURLToPath(import.meta.url), String(port), join(server.folder, 'data'), BUCKET]
    const from = server.log.length
    await server.start({ file: process.execPath, args, isReady: () => server.log.slice(from).includes('ready') })
    return port
  }
  try {
    const port = await withFreePort(start)
    const endpoint = `http://127.0.0.1:${port}`
    return {
      url: (prefix) => `s3://${BUCKET}/${prefix}?endpoint=${endpoint}&region=us-east-1`,
      bucket: BUCKET,
      endpoint,
      files: () =>
        readdirSync(join(server.folder, 'data', BUCKET), { recursive: true })
          .map(String)
          .sort(),
      env: CREDENTIALS,
      stop: () => server.stop('SIGKILL'),
      async start() {
        await start(port)
      },
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    }
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
}

if (import.meta.main) {
  const [port, directory, bucket] = process.argv.slice(2)
  mkdirSync(directory!, { recursive: true })
  const S3rver = createRequire(import.meta.url)('@20minutes/s3rver')
  const server = new S3rver({
    port: Number(port),
    address: '127.0.0.1',
    silent: true,
    directory,
    configureBuckets: [{ name: bucket }],
  })
  await server.run()
  console.log('ready')
}
