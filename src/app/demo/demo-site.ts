/**
 * The site that the project templates scrape, so that a first run works without internet access: a book shop as HTML pages, as a
 * JSON API and as a page rendered by a script, plus a job board. Small, always the same, loopback only.
 */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { ScrapeError } from '../../core/errors.ts'
import { DEMO_URL } from './demo-url.ts'

const PORT = Number(new URL(DEMO_URL).port)
const BOOKS = 24
const PAGE_SIZE = 8
const PAGES = BOOKS / PAGE_SIZE
const SUBJECTS = ['Lighthouse', 'Orchard', 'Harbour', 'Clockmaker', 'Quarry', 'Ferry']
const MOODS = ['Quiet', 'Borrowed', 'Winter', 'Stubborn']
const TITLES = ['Data Engineer', 'Gardener', 'Night Porter', 'Typesetter', 'Ferry Pilot']
const PLACES = ['Rome, Italy', 'Remote', 'Lyon, France', 'Berlin, Germany', 'Porto, Portugal']

export interface DemoSite extends AsyncDisposable {
  readonly url: string
}

/** Listens on the port of `DEMO_URL` by default; 0 picks a free port. */
export async function startDemoSite(port = PORT): Promise<DemoSite> {
  const server = createServer((request, response) => answer(request.url ?? '/', response))
  server.listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch (cause) {
    throw new ScrapeError('E_USAGE', `the demo site cannot have port ${port}: ${(cause as Error).message}`, {
      fix: 'End the program that has the port, or scrape another site with --site URL.',
      cause,
    })
  }
  const address = server.address() as { port: number }
  return {
    url: `http://127.0.0.1:${address.port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function answer(target: string, response: ServerResponse): void {
  const url = URL.parse(target, DEMO_URL)
  const body = url === null ? undefined : bodyOf(url)
  if (body === undefined) response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>Not found</h1>')
  else send(response, body)
}

function bodyOf({ pathname, searchParams }: URL): string | object | undefined {
  const page = /^\/(?:page\/([1-9]\d{0,2}))?$/.exec(pathname)
  const book = /^\/book\/([1-9]\d{0,2})$/.exec(pathname)
  if (page !== null && Number(page[1] ?? 1) <= PAGES) return listing(Number(page[1] ?? 1))
  if (book !== null && Number(book[1]) <= BOOKS) return detail(Number(book[1]))
  if (pathname === '/app') return drawn
  if (pathname === '/api/books') return booksAnswer(Number(searchParams.get('page') ?? 1))
  if (pathname === '/api/jobs') return { jobs: TITLES.map(job) }
  return undefined
}

function send(response: ServerResponse, body: string | object): void {
  const isText = typeof body === 'string'
  response.setHeader('content-type', isText ? 'text/html; charset=utf-8' : 'application/json')
  response.end(isText ? body : JSON.stringify(body))
}

const titleOf = (id: number) => `The ${MOODS[id % MOODS.length]} ${SUBJECTS[id % SUBJECTS.length]}, part ${id}`
const priceOf = (id: number) => (800 + ((id * 137) % 2000)) / 100
const idsOf = (page: number) => Array.from({ length: PAGE_SIZE }, (_, i) => (page - 1) * PAGE_SIZE + i + 1)
const bookOf = (id: number) => ({ id, title: titleOf(id), price: priceOf(id), inStock: (id * 7) % 20 })
const isPage = (page: number) => Number.isInteger(page) && page >= 1 && page <= PAGES

function booksAnswer(page: number): object {
  return {
    books: isPage(page) ? idsOf(page).map(bookOf) : [],
    nextPage: isPage(page) && page < PAGES ? page + 1 : null,
  }
}

function job(title: string, i: number): object {
  return { id: `job-${i + 1}`, title, location: PLACES[i], salary: `€${30 + i * 5},000 - €${40 + i * 5},000 a year` }
}

const html = (title: string, body: string) =>
  `<!doctype html>\n<html lang="en"><head><title>${title}</title></head><body>\n<h1>${title}</h1>\n${body}\n</body></html>\n`

function listing(page: number): string {
  const books = idsOf(page).map((id) => `<li class="book"><a href="/book/${id}">${titleOf(id)}</a></li>`)
  const next = page < PAGES ? `<a class="next" href="/page/${page + 1}">next</a>` : ''
  return html('Books', `<ul>\n${books.join('\n')}\n</ul>\n${next}`)
}

function detail(id: number): string {
  const { title, price, inStock } = bookOf(id)
  return html(title, `<p class="price">£${price.toFixed(2)}</p>\n<p class="stock">${inStock} in stock</p>`)
}

/** Empty until its script has called the API: only a browser sees the books. */
const drawn = html(
  'Books, drawn by a script',
  `<ul id="books"></ul>
<script>
fetch('/api/books').then((answer) => answer.json()).then(({ books }) => {
  for (const { id, title, price } of books) {
    const line = document.createElement('li')
    line.className = 'book'
    line.dataset.id = id
    line.innerHTML = '<b></b> <span></span>'
    line.querySelector('b').textContent = title
    line.querySelector('span').textContent = '£' + price.toFixed(2)
    document.getElementById('books').append(line)
  }
})
</script>`,
)
