/** Immediate results: one page through a scraper, or the list of a site's URLs. */
import * as z from 'zod'
import { endpoint } from './endpoint.ts'
import { scraperName } from './schemas.ts'

const area = 'one page'
const url = z.url({ protocol: /^https?$/ }).max(8192)
const failure = z.object({ code: z.string(), message: z.string(), fix: z.string().nullable() })

export const onePageEndpoints = {
  tryPage: endpoint({
    method: 'POST',
    path: '/v1/try',
    area,
    role: 'operate',
    summary: 'Fetch one page and read it with a scraper; nothing is queued and nothing written',
    body: z.strictObject({
      scraper: scraperName,
      url,
      route: z.string().max(100).optional(),
      args: z.record(z.string(), z.json()).default({}),
      data: z.json().optional(),
    }),
    answer: z.object({
      ok: z.boolean(),
      route: z.string(),
      status: z.int().nullable(),
      finalUrl: z.string().nullable(),
      items: z.array(z.record(z.string(), z.unknown())),
      invalid: z.array(z.object({ problems: z.array(z.string()), item: z.unknown() })),
      links: z.array(z.object({ route: z.string(), url: z.string() })),
      refused: z.array(z.object({ url: z.string(), why: z.string() })),
      fetchMs: z.number(),
      readMs: z.number(),
      error: failure.nullable(),
    }),
  }),
  mapSite: endpoint({
    method: 'POST',
    path: '/v1/map',
    area,
    role: 'operate',
    summary: 'The URLs of a site, from its sitemaps or the links of the page',
    body: z.strictObject({ url, max: z.int().min(1).max(50_000).default(1000) }),
    answer: z.object({
      urls: z.array(z.string()),
      sources: z.array(z.object({ url: z.string(), kind: z.enum(['sitemap', 'page']), urls: z.int() })),
      isCut: z.boolean().describe('there are more than `max`'),
      error: failure.nullable(),
    }),
  }),
} as const
