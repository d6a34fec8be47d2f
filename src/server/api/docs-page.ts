/** `/docs`: every route on one page, generated from the endpoints, without scripts or external resources. */
import { createHash } from 'node:crypto'
import * as z from 'zod'
import { type Endpoint, isStreamed } from './routes/endpoint.ts'

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --dim: #888 }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem }
h1 { font-size: 1.6rem } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line) }
details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; padding: .4rem .8rem }
summary { cursor: pointer; display: flex; gap: .8rem; align-items: baseline; flex-wrap: wrap }
code, pre { font: 13px/1.45 ui-monospace, monospace } pre { overflow: auto; max-height: 30rem }
b.method { min-width: 4.2rem; font: 600 13px ui-monospace, monospace } .dim { color: var(--dim) }
table { border-collapse: collapse } td { padding: .15rem 1rem .15rem 0; vertical-align: top }`

/** The page may use this style and nothing else. */
export const DOCS_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; frame-ancestors 'none'`

export function docsPage(endpoints: Readonly<Record<string, Endpoint>>, version: string): string {
  const areas = Map.groupBy(Object.entries(endpoints), ([, { area }]) => area)
  const sections = [...areas].map(
    ([area, routes]) => `<h2>${escaped(area)}</h2>${routes.map(([name, one]) => routeText(name, one)).join('')}`,
  )
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Sluice API</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>${STYLE}</style></head><body>
<h1>Sluice API <span class="dim">${escaped(version)}</span></h1>
<p>JSON in and out; errors are <code>application/problem+json</code> with <code>code</code> and <code>hint</code>. Send
<code>Authorization: Bearer KEY</code>; until the first key is made, requests made on the server’s own machine need none. The document for programs: <a href="/openapi.json">/openapi.json</a>.</p>
${sections.join('')}</body></html>`
}

function routeText(name: string, one: Endpoint): string {
  const { method, path, summary, role, status = 200, answer } = one
  return `<details id="${name}"><summary><b class="method">${method}</b><code>${escaped(path)}</code> <span>${escaped(summary)}</span>
<span class="dim">${role ?? 'anybody'}</span></summary>
${fieldsTable('path', one.params)}${fieldsTable('query', one.query)}
${one.isIdempotentByKey ? '<p><code>Idempotency-Key</code>: a repeat with the same key gets the first answer again.</p>' : ''}
${one.body === undefined ? '' : `<p>body</p>${schemaText(one.body, 'input')}`}
<p>answer <code>${status}</code>${isStreamed(answer) ? ` ${answer.contentTypes.map((type) => `<code>${escaped(type)}</code>`).join(' ')}` : ''}</p>
${answer === undefined || isStreamed(answer) ? '' : schemaText(answer, 'output')}</details>`
}

function fieldsTable(place: string, fields: z.ZodObject | undefined): string {
  if (fields === undefined) return ''
  const { properties = {}, required = [] } = z.toJSONSchema(fields, { io: 'input', unrepresentable: 'any' }) as {
    properties?: Record<string, Record<string, unknown>>
    required?: string[]
  }
  const rows = Object.entries(properties).map(([name, { type, enum: values, default: preset, description }]) => {
    const kind = values === undefined ? String(type ?? '') : (values as unknown[]).join(' | ')
    const more = [
      required.includes(name) ? 'required' : '',
      preset === undefined ? '' : `default ${preset}`,
      description ?? '',
    ]
    return `<tr><td><code>${escaped(name)}</code><td>${escaped(kind)}<td class="dim">${escaped(more.filter(Boolean).join(' · '))}`
  })
  return `<p>${place}</p><table>${rows.join('')}</table>`
}

function schemaText(schema: z.ZodType, io: 'input' | 'output'): string {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any', reused: 'inline' })
  return `<pre>${escaped(JSON.stringify(rest, null, 1))}</pre>`
}

const escaped = (text: string) =>
  text.replace(/[&<>"]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[sign]!)
