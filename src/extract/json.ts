/** JSON in pages. */
import { ScrapeError } from '../core/errors.ts'

/** Parses, or throws `E_JSON_INVALID` with the source of the text. */
export function parseJson(text: string, where: string, url: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new ScrapeError('E_JSON_INVALID', `${where}: ${why.slice(0, 200)}`, { url, cause })
  }
}
