/**
 * The tree of a real browser: what Chromium makes of a page, without its scripts, is what `$` reads, compared as `outerHTML`.
 * parse5 and we follow the same text of the standard; Chromium was written by others.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import { type Browser, type HTTPRequest, launch, type Page } from 'puppeteer-core'
import { generatedHtml, randomOf } from '../../src/extract/generated-html.test-kit.ts'
import { ourReading } from '../../src/extract/tree-oracle.test-kit.ts'
import { chromiumForTests } from '../services/chromium.ts'

const PAGES = new URL('../pages/', import.meta.url)
const DOCUMENTS = 100
/** Longer than the slowest machine needs. */
const WAIT_MS_MAX = 240_000
/**
 * Left out of the generated documents: scripts; frames, which load; and a byte order mark, which is not part of the text.
 * Also what Chromium (156) parses in a way of its own or that parse5 does not have yet:
 *   - select: any element may be inside (since version 135)
 *   - processing instructions: `<?php ?>` is not a comment any more
 *   - NUL: dropped before it could imply the body
 *   - a form in a table in a template: Chromium keeps it, by the standard it is nothing
 */
const WITHOUT = /script|frame|select|option|optgroup|<\?|\0|\uFEFF/i
const FORM_IN_TEMPLATE = /<template.*<form/is

let folder: string
let browser: Browser
let page: Page

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-tree-test-'))
  browser = await launch({
    executablePath: await chromiumForTests(),
    headless: 'shell',
    pipe: true,
    userDataDir: folder,
    timeout: WAIT_MS_MAX,
    protocolTimeout: WAIT_MS_MAX,
    // Nothing is loaded but the documents, which are passed in.
    args: ['--host-resolver-rules=MAP * ~NOTFOUND', ...(process.getuid?.() === 0 ? ['--no-sandbox'] : [])],
  })
  page = await browser.newPage()
  page.setDefaultTimeout(WAIT_MS_MAX)
  await page.setJavaScriptEnabled(false)
  await page.setRequestInterception(true)
})
after(async () => {
  await browser.close()
  rmSync(folder, { recursive: true, force: true })
})

/** What Chromium makes of this answer to a request for a page. */
async function chromiumHtml(html: string): Promise<string> {
  const answer = (request: HTTPRequest) => {
    if (!request.isNavigationRequest() || request.frame() !== page.mainFrame()) return request.abort()
    return request.respond({ contentType: 'text/html; charset=utf-8', body: html })
  }
  page.on('request', answer)
  try {
    await page.goto('http://page.test/', { waitUntil: 'domcontentloaded' })
    return (await page.evaluate('document.documentElement.outerHTML')) as string
  } finally {
    page.off('request', answer)
  }
}

it('reads pages of test/pages as Chromium does', async () => {
  const files = readdirSync(PAGES).filter((name) => name.endsWith('.html'))
  // The pages of one project are alike, so every third will do.
  for (const file of files.filter((name, i) => i % 3 === 0 || name.startsWith('made-'))) {
    const html = readFileSync(new URL(file, PAGES), 'utf8')
    if (/<select/i.test(html)) continue
    assert.equal(ourReading(html).html, await chromiumHtml(html), file)
  }
})

it('reads generated documents as Chromium does', async () => {
  const seed = Date.now() % 1_000_000_000
  for (let i = 0; i < DOCUMENTS; i++) {
    const html = generatedHtml(randomOf(seed, i), { piecesMax: 20, without: WITHOUT })
    if (FORM_IN_TEMPLATE.test(html)) continue
    assert.equal(
      ourReading(html).html,
      await chromiumHtml(html),
      `seed ${seed}, document ${i}: ${JSON.stringify(html)}`,
    )
  }
})
