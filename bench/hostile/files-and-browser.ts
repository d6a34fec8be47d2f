/** Files that lie about their name, length or end, and pages that misbehave in a browser. */
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { openSite } from '../../test/browser/site.ts'
import { type Answer, content, serveFile, startFileServer } from '../../test/files/file-server.ts'
import { chromiumForTests } from '../../test/services/chromium.ts'
import { openHostileSite } from '../../test/site/hostile.ts'
import type { Outcome } from './cases.ts'
import { endOf, type Family, familyOf, NO_RETRIES, run } from './family.ts'

const FILE_BYTES_MAX = 4_000_000
/** No two are the same, or one would be stored for all. */
const named = (disposition: string): Answer =>
  serveFile(Buffer.from(`a file called ${disposition}`), {
    headers: { 'content-disposition': `attachment; filename="${disposition}"` },
  })
const bytes =
  (headers: Record<string, string>, body: Buffer | string, then: 'end' | 'cut' | 'stay' = 'end'): Answer =>
  (_request, response) => {
    response.writeHead(200, headers).write(body, () => then === 'cut' && setTimeout(() => response.destroy(), 50))
    if (then === 'end') response.end()
  }
const endless: Answer = (request, response) => {
  response.writeHead(200, { 'content-type': 'application/zip' })
  const piece = Buffer.alloc(65_536, 'PK')
  const more = () => {
    while (!request.socket.destroyed && response.write(piece));
    if (!request.socket.destroyed) response.once('drain', more)
  }
  more()
}

const FILES: readonly (readonly [name: string, expect: Outcome, answer: Answer])[] = [
  ['a name that climbs', 'page', named('../../../../etc/passwd')],
  ['a name that climbs, encoded', 'page', named('..%2f..%2fetc%2fpasswd')],
  ['an absolute name', 'page', named('/etc/cron.d/x')],
  ['a name of Windows', 'page', named('C:\\\\Windows\\\\x.dll')],
  ['a device', 'page', named('CON.txt')],
  ['a name of 10,000 characters', 'page', named(`${'x'.repeat(10_000)}.pdf`)],
  ['no name but dots', 'page', named('..')],
  ['too large, announced', 'E_FILE_TOO_LARGE', bytes({ 'content-length': '99999999999' }, 'x', 'stay')],
  ['endless', 'E_FILE_TOO_LARGE', endless],
  ['a gzip bomb', 'E_FILE_TOO_LARGE', bytes({ 'content-encoding': 'gzip' }, gzipSync(Buffer.alloc(200_000_000)))],
  ['damaged gzip', 'E_ENCODING', bytes({ 'content-encoding': 'gzip' }, gzipSync(content(100_000)).subarray(0, 5000))],
  ['shorter than announced', 'E_BODY_SHORT', bytes({ 'content-length': '5000' }, 'half a file', 'cut')],
  ['gone', 'E_NOT_FOUND', (_request, response) => response.writeHead(404).end()],
] // biome-ignore format: a table

export async function runFiles(folder: string): Promise<Family> {
  const paths = Object.fromEntries(FILES.map(([, , answer], i) => [`/file/${i}`, answer]))
  await using server = await startFileServer({
    ...paths,
    '/': bytes({ 'content-type': 'text/html' }, '<h1>files</h1>'),
  })
  const list = join(folder, 'files.json')
  await writeFile(list, JSON.stringify(Object.keys(paths).map((path) => server.url + path)))
  const args = ['--arg', `base=${server.url}/`, '--arg', `list=${list}`, '--file-max', String(FILE_BYTES_MAX)]
  const { cost, events } = await run('hostile-files', folder, [...args, ...NO_RETRIES], { of: 'file' })
  const ends = FILES.map(([name, expect], i) => {
    const event = events.findLast(({ url, outcome }) => url === `${server.url}/file/${i}` && outcome !== 'recorded')
    return endOf(name, expect, event)
  })
  const stored = await readdir(join(folder, 'runs', 'hostile-files', 'latest', 'files'), { recursive: true, withFileTypes: true }) // biome-ignore format: one line reads better
  const expected = FILES.filter(([, expect]) => expect === 'page').length
  const inPlace = stored.filter((entry) => entry.isFile() && Buffer.byteLength(entry.name) <= 150).length
  const outside = { name: 'files in their folder', expect: 'page', ms: 0 } as const
  return familyOf(
    'files',
    [...ends, { ...outside, got: inPlace === expected ? 'page' : `${inPlace} files` }],
    cost.largestRssMb,
  )
}

const script = (code: string) => `<p id=p>fine</p><script>${code}</script>`
const BROWSER_PAGES: readonly (readonly [name: string, expect: Outcome, html: (internal: string) => string])[] = [
  ['opens windows for ever', 'E_BROWSER_FLOOD', () => script('for (;;) window.open("/fine")')],
  ['shows dialogs for ever', 'E_BROWSER_FLOOD', () => script('for (;;) alert(1)')],
  ['a script that never ends', 'E_TIMEOUT_TOTAL', () => script('for (;;);')],
  ['sends itself on for ever', 'E_REDIRECT_LIMIT', () => script('location = "?" + Math.random()')],
  ['fills the memory', 'E_BROWSER_CRASHED', () => script('const all = []; for (;;) all.push(new Uint8Array(8e6).fill(1))')],
  ['a dialog and a window', 'page', () => script('p.textContent = String(confirm("?")); window.open("/fine")')],
  ['does not want to be left', 'page', () => script('onbeforeunload = (event) => { event.preventDefault(); return "stay" }')],
  ['50,000 nested tags', 'page', () => `${'<div>'.repeat(50_000)}deep`],
  ['file: in a frame', 'page', () => '<p>fine</p><iframe src="file:///etc/passwd"></iframe>'],
  ['asks an internal service', 'page', (internal) => `<img src="${internal}"><iframe src="${internal}"></iframe>${script(`fetch("${internal}"); new WebSocket("${internal.replace('http', 'ws')}"); navigator.sendBeacon("${internal}")`)}`],
  ['leads to an internal service', 'E_PRIVATE_ADDRESS', (internal) => script(`location = "${internal}"`)],
] // biome-ignore format: a table

export async function runBrowser(folder: string): Promise<Family> {
  await using internal = await openHostileSite()
  const pages = BROWSER_PAGES.map(([, , html], i) => [`/page/${i}`, html(internal.url('page'))] as const)
  await using site = await openSite({ ...Object.fromEntries(pages), '/fine': '<p>fine</p>' })
  const list = join(folder, 'browser.json')
  await writeFile(list, JSON.stringify(pages.map(([path]) => site.url + path)))
  const env = { SLUICE_CHROME: await chromiumForTests() }
  const args = ['--arg', `list=${list}`, '--browsers', '2', ...NO_RETRIES]
  const { cost, events } = await run('hostile-browser', folder, args, { env })
  if (internal.requests.length > 0) throw new Error(`the internal service was asked ${internal.requests.length} times`)
  const ends = BROWSER_PAGES.map(([name, expect], i) =>
    endOf(
      name,
      expect,
      events.findLast(({ url }) => url === `${site.url}/page/${i}`),
    ),
  )
  return familyOf('browser', ends, cost.ownRssMb)
}
