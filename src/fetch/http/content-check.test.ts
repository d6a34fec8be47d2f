/** What counts as a page: empty responses and files are refused, unless the route accepts them. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { deflateRawSync, gzipSync } from 'node:zlib'
import type { ErrorCode } from '../../core/error-table.ts'
import { ScrapeError } from '../../core/errors.ts'
import { pageOf } from '../../core/failed-page.ts'
import type { LivePage, Page } from '../../core/page.ts'
import type { Accept } from '../../core/scraper.ts'
import { createJudge } from '../block/to-error.ts'
import type { FetchRequest } from '../contract.ts'
import { type ChainFetcher, createFetcher } from '../fetcher.ts'
import { createRateLimit } from '../rate/rate-limit.ts'
import { checkContent, isReadableType } from './content-check.ts'
import { openTestHttp } from './http.test-kit.ts'
import type { HttpClient } from './http.ts'
import { HttpPage } from './http-page.ts'

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const PDF = Buffer.from('%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer\n%%EOF\n')
const ZIP = zipOf('a.txt', 'hello')
const NOISE = Buffer.from(Array.from({ length: 4000 }, (_, i) => (i * 7919 + (i >> 3) * 104_729) & 255))
const HTML = '<html><head><title>A page</title></head><body><h1>A page</h1><p>Something to read.</p></body></html>'

/** A ZIP archive with one file. */
function zipOf(name: string, text: string): Buffer {
  const data = deflateRawSync(text)
  const head = Buffer.alloc(30)
  head.writeUInt32LE(0x04034b50, 0)
  head.writeUInt16LE(20, 4)
  head.writeUInt16LE(8, 8)
  head.writeUInt32LE(data.length, 18)
  head.writeUInt32LE(text.length, 22)
  head.writeUInt16LE(name.length, 26)
  return Buffer.concat([head, Buffer.from(name), data])
}

interface Answer {
  body: string | Buffer
  status?: number
  headers?: Record<string, string>
}
type Case = Answer & { accept?: Accept; expected: ErrorCode | 'page' }

const type = (value: string) => ({ 'content-type': value })
const CASES: Record<string, Case> = {
  'a page': { body: HTML, headers: type('text/html'), expected: 'page' },
  'a page without a type': { body: HTML, expected: 'page' },
  'a page of a type without meaning': { body: HTML, headers: type('html'), expected: 'page' },
  'no body': { body: '', headers: type('text/html'), expected: 'E_EMPTY' },
  'no body and no type': { body: '', expected: 'E_EMPTY' },
  'white space': { body: ' \r\n\t\n', headers: type('text/html'), expected: 'E_EMPTY' },
  'a byte order mark': { body: '\ufeff', headers: type('text/html; charset=utf-8'), expected: 'E_EMPTY' },
  'a byte order mark and white space': { body: '\ufeff \n', headers: type('text/html'), expected: 'E_EMPTY' },
  'spaces that do not break': { body: '\u00a0\u00a0', headers: type('text/html; charset=utf-8'), expected: 'E_EMPTY' },
  'white space in UTF-16': {
    body: Buffer.from('\ufeff \n ', 'utf16le'),
    headers: type('text/html'),
    expected: 'E_EMPTY',
  },
  'white space that was compressed': {
    body: gzipSync('  \n'),
    headers: { ...type('text/html'), 'content-encoding': 'gzip' },
    expected: 'E_EMPTY',
  },
  'no JSON': { body: '', headers: type('application/json'), expected: 'E_EMPTY' },
  'status 204': { body: '', status: 204, expected: 'E_EMPTY' },
  'status 205': { body: '', status: 205, expected: 'E_EMPTY' },
  'no body where that is accepted': { body: '', accept: { empty: true }, expected: 'page' },
  'status 204 where that is accepted': { body: '', status: 204, accept: [204], expected: 'page' },
  'status 204 where nothing is accepted as well': { body: '', status: 204, accept: { empty: true }, expected: 'page' },
  'an empty 404 where 404 is accepted': { body: '', status: 404, accept: [404], expected: 'page' },
  'an empty 404 by the rules': { body: '', status: 404, accept: { status: [404] }, expected: 'page' },
  'an empty 200 where 404 is accepted': { body: '', accept: [404], expected: 'E_EMPTY' },
  'zero as JSON': { body: '0', headers: type('application/json'), expected: 'page' },
  'a ZIP': { body: ZIP, headers: type('application/zip'), expected: 'E_CONTENT_TYPE' },
  'a PDF': { body: PDF, headers: type('application/pdf; x=y'), expected: 'E_CONTENT_TYPE' },
  'an image': { body: PNG, headers: type('IMAGE/PNG'), expected: 'E_CONTENT_TYPE' },
  'bytes of any kind': { body: HTML, headers: type('application/octet-stream'), expected: 'E_CONTENT_TYPE' },
  'a film': { body: NOISE, headers: type('video/mp4'), expected: 'E_CONTENT_TYPE' },
  'a PDF where that is accepted': {
    body: PDF,
    headers: type('application/pdf'),
    accept: { types: ['application/pdf'] },
    expected: 'page',
  },
  'an image where any is accepted': {
    body: PNG,
    headers: type('image/png'),
    accept: { types: ['image/*'] },
    expected: 'page',
  },
  'an image where only a PDF is accepted': {
    body: PNG,
    headers: type('image/png'),
    accept: { types: ['application/pdf'] },
    expected: 'E_CONTENT_TYPE',
  },
  'a ZIP that is called HTML': { body: ZIP, headers: type('text/html'), expected: 'E_CONTENT_TYPE' },
  'a PDF that is called text': { body: PDF, headers: type('text/plain'), expected: 'E_CONTENT_TYPE' },
  'an image without a type': { body: PNG, expected: 'E_CONTENT_TYPE' },
  'noise that is called HTML': { body: NOISE, headers: type('text/html'), expected: 'E_CONTENT_TYPE' },
  'a ZIP that is called HTML where a ZIP is accepted': {
    body: ZIP,
    headers: type('text/html'),
    accept: { types: ['application/zip'] },
    expected: 'page',
  },
  'a page with stray control characters': {
    body: HTML.replace('Something', 'Some\0thing \x01'),
    headers: type('text/html'),
    expected: 'page',
  },
  'a page in UTF-16 without a mark': {
    body: Buffer.from(HTML, 'utf16le'),
    headers: type('text/html; charset=utf-16le'),
    expected: 'page',
  },
  'a picture that is XML': {
    body: '<svg xmlns="http://www.w3.org/2000/svg"/>',
    headers: type('image/svg+xml'),
    expected: 'page',
  },
}

describe('a response', () => {
  let answer: Answer
  let http: HttpClient
  let fetcher: ChainFetcher
  let url: string
  let sentBytes = 0
  let onClosed: (() => void) | undefined
  const events: { type: string }[] = []
  const never = new AbortController().signal
  const rateLimit = createRateLimit({
    perHost: { concurrency: 8, rps: 0, delayMs: 0 },
    concurrency: 8,
    crawlDelayMsMax: 0,
  })
  const server = createServer((request, response) => {
    if (request.url === '/endless') sendForEver(response)
    else response.writeHead(answer.status ?? 200, answer.headers).end(answer.body)
  })

  function sendForEver(response: ServerResponse): void {
    response.writeHead(200, type('application/zip'))
    response.on('close', () => onClosed?.())
    const more = () => {
      while (!response.destroyed && response.write(NOISE)) sentBytes += NOISE.length
    }
    response.on('drain', more)
    more()
  }

  before(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    http = openTestHttp()
    const judge = createJudge({ retryAfterMsMax: 60_000, events: { emit: (event) => events.push(event) } })
    fetcher = createFetcher({ http, rateLimit, judge, retryAfterMsMax: 60_000 })
  })

  after(async () => {
    await fetcher[Symbol.asyncDispose]()
    rateLimit[Symbol.dispose]()
    await http[Symbol.asyncDispose]()
    server.close()
    server.closeAllConnections()
  })

  const fetched = async (request: Partial<FetchRequest> = {}): Promise<Page | ScrapeError> =>
    await fetcher.fetch({ url, ...request }, never).catch((error: ScrapeError) => error)

  for (const [name, { expected, accept, ...given }] of Object.entries(CASES)) {
    test(`${name} is ${expected === 'page' ? 'a page' : expected}`, async () => {
      answer = given
      const result = await fetched(accept === undefined ? {} : { accept })
      assert.equal(result instanceof ScrapeError ? result.code : 'page', expected)
      if (result instanceof ScrapeError) assert.equal(pageOf(result)?.status, given.status ?? 200)
    })
  }

  test('of a refused type is not read to its end', async () => {
    const closed = new Promise<void>((resolve) => {
      onClosed = resolve
    })
    const result = await fetched({ url: `${url}endless` })
    assert.equal((result as ScrapeError).code, 'E_CONTENT_TYPE')
    await closed
    assert.ok(sentBytes < 16_000_000, `${sentBytes} bytes went out`)
  })

  test('that looks like a block is marked as suspect, and refused as a start page', async () => {
    answer = {
      body: '<html><head><title>Contact</title></head><body><form>Write<div class="g-recaptcha"></div></form></body></html>',
      headers: type('text/html'),
    }
    const found = (await fetched()) as Page
    assert.match(found.suspicion ?? '', /widget: g-recaptcha/)
    const refused = (await fetched({ isStart: true })) as ScrapeError
    assert.equal(refused.code, 'E_SUSPECT')
    const accepted = (await fetched({ isStart: true, accept: { suspect: true } })) as Page
    assert.equal(accepted.status, 200)
    answer = { body: HTML, headers: type('text/html') }
    assert.equal(((await fetched({ isStart: true })) as Page).suspicion, undefined)
  })
})

test('an empty response is empty in a browser too, and a page rendered by a script is not', () => {
  const shown = (html: string): Page =>
    Object.assign(
      new HttpPage({
        requestedUrl: 'http://a.test/',
        url: 'http://a.test/',
        redirects: [],
        status: 200,
        headers: type('text/html'),
        body: Buffer.from(html),
        contentType: 'text/html',
        charset: 'utf-8',
        wireBytes: 0,
        timings: { firstByteMs: 0, totalMs: 0 },
        fetchedAtMs: 0,
      }),
      { live: {} as LivePage },
    )
  const blank = '<html><head></head><body></body></html>'
  assert.throws(() => checkContent(shown(blank), undefined), { code: 'E_EMPTY' })
  assert.throws(() => checkContent(shown(`<!DOCTYPE html>${blank}`), undefined), { code: 'E_EMPTY' })
  assert.equal(checkContent(shown(blank), { empty: true }), undefined)
  assert.equal(checkContent(shown(blank.replace('<body>', '<body><p>Hi</p>')), undefined), undefined)
})

test('recognises text types by any name', () => {
  const readable =
    'text/html text/csv application/json application/ld+json application/xhtml+xml application/rss+xml application/x-ndjson ' +
    'application/javascript application/xml image/svg+xml application/vnd.api+json application/geo+json text/x-component'
  const others =
    'application/pdf image/png audio/mpeg video/webm font/woff2 application/zip application/gzip application/octet-stream ' +
    'application/msword application/vnd.ms-excel application/x-xz multipart/byteranges application/wasm'
  for (const one of readable.split(' ')) assert.equal(isReadableType(one), true, one)
  for (const one of others.split(' ')) assert.equal(isReadableType(one), false, one)
})
