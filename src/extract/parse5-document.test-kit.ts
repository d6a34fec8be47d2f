/** The document parse5 builds of a page, with scripting disabled. */
import { type DefaultTreeAdapterMap, type DefaultTreeAdapterTypes, Parser } from 'parse5'

/** One correction: each NUL in SVG and MathML is a U+FFFD, as the standard says. parse5 8.1.1 makes one of a run of them. */
export function parse5Document(page: string): DefaultTreeAdapterTypes.Document {
  const parser = new Parser<DefaultTreeAdapterMap>({ scriptingEnabled: false })
  const process = parser.onNullCharacter.bind(parser)
  parser.onNullCharacter = (token) => {
    if (!parser.tokenizer.inForeignNode) return process(token)
    parser.skipNextNewLine = false
    parser._insertCharacters({ ...token, chars: '\uFFFD'.repeat(token.chars.length) })
  }
  parser.tokenizer.write(page, true)
  return parser.document
}
