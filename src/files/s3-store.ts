/**
 * Files in a bucket on S3 or a compatible server. Large ones are uploaded in parts, a few at a time; a failed upload is aborted,
 * so that its parts are not kept (and paid for) forever. A key is visible once its upload is complete.
 *
 * Credentials come from the SDK's usual sources (environment, profile, role) and are never in the URL.
 */
import { createReadStream } from 'node:fs'
import { ScrapeError } from '../core/errors.ts'
import { optionalPackage } from '../core/optional-package.ts'
import type { FileStore } from './contract.ts'
import { mustBePlain } from './naming.ts'

const [{ HeadObjectCommand, S3Client }, { Upload }] = await optionalPackage(
  'storage in S3 needs',
  ['@aws-sdk/client-s3', '@aws-sdk/lib-storage'],
  () => Promise.all([import('@aws-sdk/client-s3'), import('@aws-sdk/lib-storage')]),
)

/** `s3://BUCKET/PREFIX?endpoint=http://127.0.0.1:9000&region=eu-central-1&pathStyle=true` */
interface S3Place {
  bucket: string
  /** Empty, or ending in `/`. */
  prefix: string
  /** Default: Amazon's own, or AWS_ENDPOINT_URL_S3. */
  endpoint: string | undefined
  /** Default: AWS_REGION or the profile; `us-east-1` if an endpoint is given. */
  region: string | undefined
  /** The bucket in the path instead of the host name. Default: true if an endpoint is given. */
  isPathStyle: boolean
}

const PART_BYTES_MIN = 5 * 1024 ** 2
/** S3 allows 10,000. */
const PARTS_MAX = 9000
const PARTS_AT_ONCE = 2
const CONNECT_MS_MAX = 5000
const ANSWER_MS_MAX = 60_000
const TRIES = 3

export function parseS3Url(text: string): S3Place {
  const url = URL.parse(text)
  const fix = 'It is s3://BUCKET/PREFIX?endpoint=URL&region=NAME, credentials by AWS_ACCESS_KEY_ID and the like.'
  const bad = (why: string) => new ScrapeError('E_OPTION', `no usable s3: URL: ${why}`, { fix })
  if (url === null || url.protocol !== 's3:' || url.hostname === '') throw bad('there is no bucket in it')
  if (url.username !== '' || url.password !== '') throw bad('credentials do not belong into it')
  const known = new Set(['endpoint', 'region', 'pathStyle'])
  const unknown = [...url.searchParams.keys()].find((name) => !known.has(name))
  if (unknown !== undefined) throw bad(`unknown parameter ${JSON.stringify(unknown)}`)
  const endpoint =
    url.searchParams.get('endpoint') ?? process.env['AWS_ENDPOINT_URL_S3'] ?? process.env['AWS_ENDPOINT_URL']
  if (endpoint !== undefined && !/^https?:\/\/[^/@]+/.test(endpoint)) throw bad('the endpoint is no http(s) URL')
  const path = decodeURIComponent(url.pathname).replace(/^\/+|\/+$/g, '')
  return {
    bucket: url.hostname,
    prefix: path === '' ? '' : `${path}/`,
    endpoint,
    region:
      url.searchParams.get('region') ?? process.env['AWS_REGION'] ?? (endpoint === undefined ? undefined : 'us-east-1'),
    isPathStyle: (url.searchParams.get('pathStyle') ?? String(endpoint !== undefined)) === 'true',
  }
}

export async function openS3Store(url: string): Promise<FileStore> {
  const { bucket, prefix, endpoint, region, isPathStyle } = parseS3Url(url)
  const client = new S3Client({
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(region === undefined ? {} : { region }),
    forcePathStyle: isPathStyle,
    maxAttempts: TRIES,
    // The SDK's default sends trailing CRC32 checksums that many S3-compatible servers reject or store as part of the file.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: { connectionTimeout: CONNECT_MS_MAX, requestTimeout: ANSWER_MS_MAX, throwOnRequestTimeout: true },
  })
  const place = `s3://${bucket}/${encodeURI(prefix)}` // the prefix of every `where`: records are looked up by it
  const keyOf = (where: string) => decodeURI(where.slice(`s3://${bucket}/`.length))

  return {
    place,
    async put({ path, key, contentType, bytes }, signal) {
      signal.throwIfAborted()
      mustBePlain(key)
      const upload = new Upload({
        client,
        params: { Bucket: bucket, Key: prefix + key, Body: createReadStream(path), ContentType: contentType },
        partSize: Math.max(PART_BYTES_MIN, Math.ceil(bytes / PARTS_MAX)),
        queueSize: PARTS_AT_ONCE,
        leavePartsOnError: false,
      })
      const onAbort = () => void upload.abort().catch(() => {})
      signal.addEventListener('abort', onAbort)
      try {
        await upload.done()
      } catch (error) {
        throw signal.aborted ? signal.reason : s3Error(error, place)
      } finally {
        signal.removeEventListener('abort', onAbort)
      }
      return place + encodeURI(key)
    },
    async has(where, bytes) {
      if (!where.startsWith(`s3://${bucket}/`)) return false
      try {
        const head = await client.send(new HeadObjectCommand({ Bucket: bucket, Key: keyOf(where) }))
        return head.ContentLength === bytes
      } catch (error) {
        // Without permission to list, a bucket answers 403 for a missing key; with write access only, the file is stored again.
        if (statusOf(error) === 404 || statusOf(error) === 403) return false
        throw s3Error(error, place)
      }
    },
    async [Symbol.asyncDispose]() {
      client.destroy()
    },
  }
}

function statusOf(error: unknown): number | undefined {
  return (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode
}

/** Errors that waiting does not fix: the run ends, resumable, and says what to do. */
const WRONG =
  /^(?:NoSuchBucket|AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|CredentialsProviderError|AuthorizationHeaderMalformed|PermanentRedirect|ExpiredToken)$/

/** The SDK's messages contain no secrets, but its errors carry whole requests, so only name and message are kept. */
function s3Error(error: unknown, place: string): ScrapeError {
  const { name, message } = error instanceof Error ? error : new Error(String(error))
  const status = statusOf(error)
  const text = `${place}: ${name}${message === '' || message === name ? '' : `: ${message}`}`.slice(0, 500)
  if (WRONG.test(name) || status === 403) {
    const fix =
      'Check the bucket, its region and the credentials (AWS_ACCESS_KEY_ID …); then --resume: nothing was lost.'
    return new ScrapeError('E_OUTPUT', text, { fix })
  }
  return new ScrapeError('E_FILE_STORE', text, status === undefined ? {} : { status })
}
