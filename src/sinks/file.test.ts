import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { ScrapeError } from '../core/errors.ts'
import { AppendFile, outputError } from './file.ts'
import { createJsonlSink } from './jsonl.ts'

async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-file-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}

const isOutputError = (error: unknown): error is ScrapeError =>
  error instanceof ScrapeError && error.code === 'E_OUTPUT'

const item = (n: number) => ({ seq: n + 1, key: String(n), json: JSON.stringify({ n, text: 'x'.repeat(500) }) })
const items = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => item(from + i))

/** A disk of 256 KiB; undefined if we may not mount one. */
async function smallDisk(t: TestContext): Promise<string | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-disk-'))
  let isMounted = false
  t.after(async () => {
    if (isMounted) execFileSync('umount', [folder])
    await rm(folder, { recursive: true })
  })
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', folder], { stdio: 'ignore' })
    isMounted = true
    return folder
  } catch {
    return undefined
  }
}

describe('AppendFile', () => {
  it('writes more than one sync-ahead at once, and ends with all of it', async (t) => {
    const path = join(await temporaryFolder(t), 'large.txt')
    await using file = await AppendFile.create(path)
    const records = Array.from({ length: 80 }, (_, i) => String.fromCharCode(97 + (i % 26)).repeat(1024 * 1024 - 1))
    for (const record of records) await file.append(record, '\n')
    assert.equal(await file.flush(), 80 * 1024 * 1024)
    assert.equal(await readFile(path, 'utf8'), `${records.join('\n')}\n`)
  })

  it('handles records larger than its buffer, between smaller ones, in order', async (t) => {
    const path = join(await temporaryFolder(t), 'x')
    await using file = await AppendFile.create(path)
    const records = [5, 600_000, 7, 200_000, 100_000, 1, 900_000, 0].map(
      (length, i) => `${i}${'é’'.repeat(length / 2)}`,
    )
    for (const record of records) await file.append(record, '\n')
    const bytes = await file.flush()
    const text = await readFile(path, 'utf8')
    assert.equal(text, records.map((record) => `${record}\n`).join(''))
    assert.equal(bytes, Buffer.byteLength(text))
    assert.equal(file.bytes, bytes)
  })

  it('creates a missing folder', async (t) => {
    const path = join(await temporaryFolder(t), 'a/b/x')
    await using file = await AppendFile.create(path)
    await file.append('x', '\n')
    assert.equal(await file.flush(), 2)
  })

  it('reports that the file is gone, shorter or altered if it cannot resume', async (t) => {
    const path = join(await temporaryFolder(t), 'x')
    await assert.rejects(AppendFile.reopen(path, 4), (error) => isOutputError(error) && /gone/.test(error.message))
    await writeFile(path, 'abc\n')
    await assert.rejects(
      AppendFile.reopen(path, 5),
      (error) => isOutputError(error) && /4 bytes, but 5/.test(error.message),
    )
    await assert.rejects(AppendFile.reopen(path, 3), (error) => isOutputError(error) && /byte 3/.test(error.message))
    assert.equal(await readFile(path, 'utf8'), 'abc\n', 'a refused file is left as it is')
    await using file = await AppendFile.reopen(path, 4)
    assert.equal(file.bytes, 4)
  })

  it('names the path and what to do when a write fails', async () => {
    // /dev/full accepts no bytes, on every machine.
    await using sink = createJsonlSink({ path: '/dev/full' })
    await sink.open(undefined)
    await sink.write(items(0, 3))
    const failure = await sink.flush().catch((error: unknown) => error)
    assert.ok(isOutputError(failure))
    assert.match(failure.message, /\/dev\/full.*disk is full/)
    assert.match(failure.fix, /Make room/)
    assert.equal(failure.verdict, 'halt')
    await assert.rejects(sink.write(items(3, 4)), isOutputError)
    await assert.rejects(sink.flush(), isOutputError)
  })

  it('loses no confirmed items when the disk fills up, and resumes when there is space again', async (t) => {
    const disk = await smallDisk(t)
    if (disk === undefined)
      return t.diagnostic('no right to mount a small disk here: the test of the size limit stands in')
    const path = join(disk, 'items.jsonl')
    const filler = join(disk, 'filler')
    await writeFile(filler, Buffer.alloc(128 * 1024))
    let position: string | undefined
    let confirmed = 0
    {
      await using sink = createJsonlSink({ path })
      await sink.open(undefined)
      const failure = await (async () => {
        for (;;) {
          await sink.write(items(confirmed, confirmed + 20))
          position = await sink.flush()
          confirmed += 20
        }
      })().catch((error: unknown) => error)
      assert.ok(isOutputError(failure), String(failure))
      assert.match(failure.message, /disk is full/)
    }
    assert.ok(confirmed > 20)
    const kept = await readFile(path, 'utf8')
    assert.equal(
      kept,
      items(0, confirmed)
        .map(({ json }) => `${json}\n`)
        .join(''),
      'every confirmed record, and nothing torn after it',
    )
    await rm(filler)
    await using sink = createJsonlSink({ path })
    await sink.open(position)
    await sink.write(items(confirmed, confirmed + 20))
    assert.equal((await sink.finish()).rows, confirmed + 20)
    assert.equal((await readFile(path, 'utf8')).split('\n').length, confirmed + 21)
  })

  it('reports missing write permission', async (t) => {
    const folder = join(await temporaryFolder(t), 'locked')
    await mkdir(folder)
    await chmod(folder, 0o500)
    if (process.getuid?.() !== 0) {
      await assert.rejects(
        AppendFile.create(join(folder, 'x')),
        (error) => isOutputError(error) && /not allowed/.test(error.message),
      )
    }
    // Root may write anywhere; a folder instead of the file stops even root.
    await assert.rejects(
      AppendFile.create(folder),
      (error) => isOutputError(error) && /a folder has this name/.test(error.message),
    )
    for (const [code, words] of [
      ['EACCES', /not allowed/],
      ['EROFS', /read-only/],
      ['EIO', /disk reports/],
    ] as const) {
      const error = outputError('/x/y', Object.assign(new Error('no'), { code }))
      assert.match(error.message, words)
      assert.match(error.message, /\/x\/y/)
    }
  })

  it('loses no confirmed items when the file may not grow further', async (t) => {
    const path = join(await temporaryFolder(t), 'items.jsonl')
    const script = `
      import { createJsonlSink } from ${JSON.stringify(new URL('./jsonl.ts', import.meta.url).href)}
      process.on('SIGXFSZ', () => {})
      const sink = createJsonlSink({ path: ${JSON.stringify(path)} })
      await sink.open(undefined)
      const item = (n) => ({ seq: n + 1, key: String(n), json: JSON.stringify({ n, text: 'x'.repeat(500) }) })
      let n = 0
      try {
        for (;; n += 20) {
          await sink.write(Array.from({ length: 20 }, (_, i) => item(n + i)))
          await sink.flush()
        }
      } catch (error) {
        console.log(JSON.stringify({ n, code: error.code, message: error.message }))
      }`
    // RLIMIT_FSIZE, 64 KiB, in a separate process.
    const command = 'ulimit -f 64; exec "$0" --input-type=module -e "$1"'
    const output = execFileSync('bash', ['-c', command, process.execPath, script], { encoding: 'utf8' })
    const { n, code, message } = JSON.parse(output) as { n: number; code: string; message: string }
    assert.equal(code, 'E_OUTPUT')
    assert.match(message, /larger than allowed/)
    assert.ok(n > 20)
    const expected = items(0, n).map(({ json }) => `${json}\n`)
    assert.equal(await readFile(path, 'utf8'), expected.join(''))
  })
})
