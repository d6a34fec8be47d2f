/** A step that extracts the text of PDFs, so that records can be searched. Needs the package `unpdf`. */
import { readFile } from 'node:fs/promises'
import { optionalPackage } from '../core/optional-package.ts'
import type { FileStep } from './contract.ts'

/** A PDF is parsed in memory, so larger ones are skipped. */
const BYTES_MAX = 50 * 1024 ** 2
const PAGES_MAX = 500
/** Maximum amount of text in a record. */
const TEXT_CHARS_MAX = 20_000

export function pdfText(): FileStep {
  return {
    name: 'pdf-text',
    takes: (contentType) => contentType === 'application/pdf',
    async run({ path, bytes, signal }) {
      if (bytes > BYTES_MAX) throw new Error(`${bytes} bytes are more than the ${BYTES_MAX} it reads`)
      const { getDocumentProxy } = await optionalPackage('the text of PDFs needs', 'unpdf', () => import('unpdf'))
      const pdf = await getDocumentProxy(new Uint8Array(await readFile(path, { signal })), { verbosity: 0 })
      try {
        const pages = pdf.numPages
        let text = ''
        for (let number = 1; number <= Math.min(pages, PAGES_MAX) && text.length < TEXT_CHARS_MAX; number++) {
          signal.throwIfAborted()
          const page = await pdf.getPage(number)
          const { items } = await page.getTextContent()
          text += `${items.map((item) => ('str' in item ? item.str + (item.hasEOL ? '\n' : '') : '')).join('')}\n`
          page.cleanup()
        }
        return { pages, text: text.trim().slice(0, TEXT_CHARS_MAX), isCut: text.trim().length > TEXT_CHARS_MAX }
      } finally {
        await pdf.loadingTask.destroy()
      }
    },
  }
}
