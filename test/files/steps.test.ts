/** The steps that process stored files, in the file process, with their real libraries. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import sharp from 'sharp'
import type { ScrapeError } from '../../src/core/errors.ts'
import { openFilePool } from '../../src/files/pool.ts'
import { openSteps } from '../../src/files/steps.ts'
import { temporaryFolder } from '../sluice.ts'
import { serveFile, startFileServer } from './file-server.ts'
import { downloadJob, ENTRY, filesIn, never, orders } from './rig.ts'

/** The smallest PDF with a line of text. */
function pdf(text: string): Buffer {
  const stream = `BT /F1 24 Tf 72 700 Td (${text}) Tj ET`
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    `<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
  ]
  let body = '%PDF-1.4\n'
  const offsets = objects.map((object, i) => {
    const at = body.length
    body += `${i + 1} 0 obj\n${object}\nendobj\n`
    return `${String(at).padStart(10, '0')} 00000 n \n`
  })
  const xref = `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.join('')}`
  return Buffer.from(
    `${body}${xref}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${body.length}\n%%EOF`,
  )
}

test('extracts text of PDFs and thumbnails of images, and leaves a note if it cannot', async () => {
  using folder = temporaryFolder()
  const picture = await sharp({ create: { width: 800, height: 400, channels: 3, background: 'red' } })
    .png()
    .toBuffer()
  await using server = await startFileServer({
    '/a.pdf': serveFile(pdf('Quarterly report')),
    '/broken.pdf': serveFile(Buffer.from('%PDF-1.7\nnothing of the kind')),
    '/a.png': serveFile(picture),
    '/broken.png': serveFile(picture.subarray(0, 100)),
    '/a.txt': serveFile(Buffer.from('text')),
  })
  await using pool = openFilePool({
    entry: ENTRY,
    orders: orders(folder.path, { steps: ['pdf-text', 'thumbnail'] }),
    workers: 1,
    findStored: async () => undefined,
  })
  const run = async (name: string) => (await pool.run(downloadJob(`${server.url}/${name}`), never)).extra
  assert.deepEqual(await run('a.pdf'), { 'pdf-text': { pages: 1, text: 'Quarterly report', isCut: false } })
  const { thumbnail } = (await run('a.png')) as { thumbnail: { width: number; height: number; where: string } }
  assert.deepEqual([thumbnail.width, thumbnail.height], [800, 400])
  assert.match(thumbnail.where, /\.png\.thumb\.jpg$/)
  const { width, height, format } = await sharp(readFileSync(fileURLToPath(thumbnail.where))).metadata()
  assert.deepEqual([width, height, format], [320, 160, 'jpeg'])
  assert.equal(typeof ((await run('broken.pdf')) as { 'pdf-text': { error: string } })['pdf-text'].error, 'string')
  assert.equal(typeof ((await run('broken.png')) as { thumbnail: { error: string } }).thumbnail.error, 'string')
  assert.deepEqual(await run('a.txt'), {})
  assert.equal(filesIn(`${folder.path}/store`).length, 6)
  assert.deepEqual(filesIn(`${folder.path}/spool`), [])
})

test('stores one thumbnail for equal images, and each record says where', async () => {
  using folder = temporaryFolder()
  const picture = await sharp({ create: { width: 8, height: 4, channels: 3, background: 'red' } })
    .png()
    .toBuffer()
  await using server = await startFileServer({ '/a.png': serveFile(picture), '/b.png': serveFile(picture) })
  await using pool = openFilePool({
    entry: ENTRY,
    orders: orders(folder.path, { steps: ['thumbnail'] }),
    workers: 1,
    findStored: async () => undefined,
  })
  const [first, second] = [
    await pool.run(downloadJob(`${server.url}/a.png`), never),
    await pool.run(downloadJob(`${server.url}/b.png`), never),
  ]
  assert.equal(second.isSame, true)
  assert.deepEqual(second.extra, first.extra)
  assert.equal(filesIn(`${folder.path}/store`).length, 2)
})

test('reports an unknown step', () => {
  assert.throws(
    () => openSteps(['ocr']),
    (error: ScrapeError) => error.code === 'E_OPTION',
  )
  assert.throws(
    () => openSteps(['constructor']),
    (error: ScrapeError) => error.code === 'E_OPTION',
  )
})
