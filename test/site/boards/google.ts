/**
 * A loopback Google: a script builds the search page from rows; without scripts there is nothing to read. Further pages come from
 * /async/callback:550, as JSON in a string in JSON, with the token of the next one in markup after it.
 */
import type { Answer, Site } from '../../browser/site.ts'
import { type BoardOptions, openBoard } from './walls.ts'

export const GOOGLE_SEARCH = '/search'
export const GOOGLE_MORE = '/async/callback:550'
const CARDS = 10

export const googleId = (n: number) => `g${String(n).padStart(4, '0')}==`

function fields(n: number): unknown[] {
  const array: unknown[] = Array.from({ length: 29 }, () => null)
  array[0] = `Baker ${n}`
  array[1] = 'Bread "& Butter" ]}'
  array[2] = 'Boston, MA'
  array[3] = [[`https://jobs.example/baker/${n}`, 'jobs.example']]
  array[12] = '3 days ago'
  array[19] = `Bake bread, pay is good. Nr. ${n}`
  array[28] = googleId(n)
  return array
}

const numbersFrom = (from: number, jobs: number) =>
  Array.from({ length: Math.max(0, Math.min(CARDS, jobs - from)) }, (_, i) => from + i)

/** Only the script assembles the key. */
function searchPage(numbers: readonly number[], token: string | undefined, isRedesigned: boolean): string {
  const rows = JSON.stringify(numbers.map(fields)).replaceAll('<', '\\u003c')
  const key = isRedesigned ? "'5200' + '84653'" : "'5200' + '84652'"
  return `<!doctype html><html><head><title>jobs - Google Search</title></head><body><div id="root"></div><script>
    const rows = ${rows}
    setTimeout(() => {
      const data = document.createElement('script')
      data.type = 'application/json'
      data.textContent = JSON.stringify(rows.map((row) => [null, [{ [${key}]: row }]]))
      document.body.append(data)
      root.innerHTML = '<div ${token === undefined ? '' : `data-async-fc="${token}"`}>' + rows.length + ' jobs</div>'
    }, 50)
  </script></body></html>`
}

function morePage(numbers: readonly number[], token: string | undefined): string {
  const inner = numbers.map((n) => [null, JSON.stringify([[[{ '520084652': fields(n) }]]])])
  const markup = token === undefined ? '' : `<div data-async-fc="${token}"></div>`
  return `)]}'\n${JSON.stringify([inner])}\n${markup}`
}

export async function startGoogleMock(options: BoardOptions): Promise<Site> {
  const { jobs, isRedesigned = false } = options
  const tokenOf = (from: number) => (from < jobs ? `Token_${from}==` : undefined)
  const search: Answer = (_request, response) => {
    const html = searchPage(numbersFrom(0, jobs), tokenOf(CARDS), isRedesigned)
    response.setHeader('content-type', 'text/html; charset=utf-8').end(html)
  }
  const more: Answer = (request, response) => {
    const token = new URL(request.url!, 'http://board').searchParams.get('fc') ?? ''
    const from = Number(/^Token_(\d+)==$/.exec(token)?.[1])
    response.setHeader('content-type', 'text/plain; charset=utf-8')
    response.end(morePage(numbersFrom(from, jobs), tokenOf(from + CARDS)))
  }
  return await openBoard({ [GOOGLE_SEARCH]: search, [GOOGLE_MORE]: more }, options)
}
