/** Content decoding: gzip, deflate, br and zstd, with a limit on the output. A damaged body is an error, never a page. */
import type * as Zlib from 'node:zlib'
import { ScrapeError } from '../../core/errors.ts'

/** No legitimate server encodes more than twice; chains of 1,000 encodings are attacks. */
const ENCODINGS_MAX = 3
/** Up to this size a body is decoded right on the event loop: a thread costs more (about 30 µs) than decoding it. */
const SYNC_WIRE_BYTES_MAX = 65_536
/** … unless the output is larger than this: a small bomb must not block the event loop. */
const SYNC_OUTPUT_BYTES_MAX = 1_048_576
/** A zstd body may consist of several frames; each costs a call. */
const FRAMES_MAX = 64

type Coding = 'gzip' | 'deflate' | 'deflate-raw' | 'br' | 'zstd'
interface Inflated {
  buffer: Buffer
  /** How much of the input was used: the rest is garbage, or another frame. */
  engine: { bytesWritten: number }
}

/** The codings of a Content-Encoding header, in the order they were applied. Throws `E_ENCODING`. */
export function parseContentEncoding(header: string): string[] {
  const names = header
    .toLowerCase()
    .split(',')
    .map((name) => name.trim().replace(/^x-gzip$/, 'gzip'))
    .filter((name) => name !== '' && name !== 'identity' && name !== 'utf-8' && name !== 'none')
  if (names.length > ENCODINGS_MAX) {
    throw new ScrapeError('E_ENCODING', `the body is encoded ${names.length} times (the limit is ${ENCODINGS_MAX})`)
  }
  const unknown = names.find((name) => !['gzip', 'deflate', 'br', 'zstd'].includes(name))
  if (unknown !== undefined) {
    throw new ScrapeError(
      'E_ENCODING',
      `the body is encoded with ${JSON.stringify(unknown.slice(0, 50))}, which is unknown`,
    )
  }
  return names
}

/** Returns a promise only for large bodies; `makeRoom` is called before more than a megabyte may come out. */
export function decodeBody(
  wire: Buffer,
  codings: readonly string[],
  bytesMax: number,
  makeRoom?: (bytes: number) => Promise<void> | undefined,
): Buffer | Promise<Buffer> {
  if (wire.length <= SYNC_WIRE_BYTES_MAX) {
    try {
      return runSync(decoding(wire, codings, Math.min(bytesMax, SYNC_OUTPUT_BYTES_MAX)))
    } catch (error) {
      if (!isTooLarge(error) || bytesMax <= SYNC_OUTPUT_BYTES_MAX) throw toError(error, codings, bytesMax)
    }
  }
  const decode = () =>
    runAsync(decoding(wire, codings, bytesMax)).catch((error: unknown) => {
      throw toError(error, codings, bytesMax)
    })
  const waiting = makeRoom?.(bytesMax)
  return waiting === undefined ? decode() : waiting.then(decode)
}

interface Job {
  coding: Coding
  input: Buffer
  outputBytesMax: number
}

/** What to inflate, layer by layer and frame by frame; the runner chooses the thread. */
function* decoding(wire: Buffer, codings: readonly string[], bytesMax: number): Generator<Job, Buffer, Inflated> {
  let body = wire
  for (const name of codings.toReversed()) {
    const coding = codingOf(name, body)
    const frames: Buffer[] = []
    let outputBytes = 0
    let input = body
    do {
      const { buffer, engine } = yield { coding, input, outputBytesMax: bytesMax - outputBytes }
      outputBytes += buffer.length
      input = nextFrame(coding, input, engine.bytesWritten, frames.push(buffer))
    } while (input.length > 0)
    body = frames.length === 1 ? frames[0]! : Buffer.concat(frames, outputBytes)
  }
  return body
}

function runSync(steps: Generator<Job, Buffer, Inflated>): Buffer {
  let step = steps.next()
  while (!step.done) step = steps.next(inflateSync(step.value))
  return step.value
}

async function runAsync(steps: Generator<Job, Buffer, Inflated>): Promise<Buffer> {
  let step = steps.next()
  while (!step.done) step = steps.next(await inflate(step.value))
  return step.value
}

/** The input after the frame just read. Only with zstd can another frame follow; with the others it is garbage. */
function nextFrame(coding: Coding, input: Buffer, usedBytes: number, framesRead: number): Buffer {
  const rest = input.subarray(usedBytes)
  if (rest.length > 0 && (coding !== 'zstd' || usedBytes === 0 || framesRead >= FRAMES_MAX)) {
    throw new Error(`${rest.length} bytes follow the end of the ${coding} data`)
  }
  return rest
}

/** "deflate" should mean zlib data, but often does not: the two-byte header tells them apart. */
function codingOf(name: string, input: Buffer): Coding {
  if (name !== 'deflate') return name as Coding
  const first = input[0] ?? 0
  const isZlib = (first & 0x0f) === 8 && ((first << 8) | (input[1] ?? 0)) % 31 === 0
  return isZlib ? 'deflate' : 'deflate-raw'
}

/** Loaded with the first encoded body: sites without encodings save 2 ms. */
let codecs: ReturnType<typeof codecsOf> | undefined
const loaded = () => (codecs ??= codecsOf(process.getBuiltinModule('node:zlib')))

function optionsOf({ coding, outputBytesMax }: Job) {
  const options = { info: true, maxOutputLength: Math.max(outputBytesMax, 1) }
  return coding === 'zstd' ? { ...options, params: loaded().zstdParams } : options
}

/** With `info`, zlib returns `{ buffer, engine }`; its types do not say so. */
function inflateSync(job: Job): Inflated {
  return loaded().sync[job.coding](job.input, optionsOf(job)) as unknown as Inflated
}

function inflate(job: Job): Promise<Inflated> {
  // Larger chunks than the default (16 KiB): each one is a round trip to a thread.
  const options = { ...optionsOf(job), chunkSize: 131_072 }
  return new Promise((resolve, reject) => {
    loaded().async[job.coding](job.input, options, (error, result) =>
      error === null ? resolve(result) : reject(error),
    )
  })
}

type Inflate = (input: Buffer, options: object, done: (error: Error | null, result: Inflated) => void) => void

function codecsOf(zlib: typeof Zlib) {
  return {
    /** RFC 9659: windows over 8 MiB are not allowed on the web; the decoder would have to hold them in memory. */
    zstdParams: { [zlib.constants.ZSTD_d_windowLogMax]: 23 },
    sync: {
      gzip: zlib.gunzipSync,
      deflate: zlib.inflateSync,
      'deflate-raw': zlib.inflateRawSync,
      br: zlib.brotliDecompressSync,
      zstd: zlib.zstdDecompressSync,
    },
    async: {
      gzip: zlib.gunzip,
      deflate: zlib.inflate,
      'deflate-raw': zlib.inflateRaw,
      br: zlib.brotliDecompress,
      zstd: zlib.zstdDecompress,
    } as unknown as Record<Coding, Inflate>,
  }
}

function isTooLarge(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
}

function toError(error: unknown, codings: readonly string[], bytesMax: number): ScrapeError {
  if (isTooLarge(error)) {
    return new ScrapeError('E_TOO_LARGE', `the body decodes to more than ${bytesMax} bytes`, { cause: error })
  }
  const reason = error instanceof Error ? error.message : String(error)
  return new ScrapeError('E_ENCODING', `the body is not valid ${codings.join(', ')} data: ${reason}`, { cause: error })
}
