/** Small XML documents (feeds of boards) as a tree. Tolerates common mistakes; detects truncated documents and non-XML. */
import { Parser } from 'htmlparser2'
import { ScrapeError } from '../../core/errors.ts'

/** An element of an XML document. Names are without their prefix: `tt:city` is `city`. */
export class XmlElement {
  readonly name: string
  readonly children: XmlElement[] = []
  readonly #texts: string[] = []

  constructor(name: string) {
    this.name = name
  }

  /** Text and CDATA of this element itself, trimmed. */
  get text(): string {
    return this.#texts.join('').trim()
  }

  append(text: string): void {
    this.#texts.push(text)
  }

  /** Descendants by path: `all('locations', 'location')` goes down one level per name. */
  all(...path: string[]): XmlElement[] {
    let found: XmlElement[] = [this]
    for (const name of path) found = found.flatMap((element) => element.children.filter((child) => child.name === name))
    return found
  }

  /** Text of the first match that has any. */
  textOf(...path: string[]): string | undefined {
    return this.all(...path).find(({ text }) => text !== '')?.text
  }
}

/** Feeds are 5 levels deep; a million open tags are an attack on memory. */
const DEPTH_MAX = 64
const ELEMENTS_MAX = 1_000_000

/**
 * Parses an XML document and returns its root element. Entities that a document declares are not expanded, so it cannot blow up.
 * Throws E_SELECTOR_EMPTY for documents that are not XML, truncated or malicious: such a feed must not pass for an empty one.
 */
export function readXml(text: string, { root, url }: { root: string; url: string }): XmlElement {
  const fail = (what: string) => new ScrapeError('E_SELECTOR_EMPTY', `${what} (${url})`, { url })
  const document = new XmlElement('')
  const open: XmlElement[] = [document]
  let elements = 0
  const parser = new Parser(
    {
      onopentagname(name) {
        if (open.length > DEPTH_MAX) throw fail(`tags nested more than ${DEPTH_MAX} deep in a feed`)
        if (++elements > ELEMENTS_MAX) throw fail(`more than ${ELEMENTS_MAX} elements in a feed`)
        const element = new XmlElement(name.slice(name.indexOf(':') + 1))
        open.at(-1)!.children.push(element)
        open.push(element)
      },
      ontext: (piece) => open.at(-1)!.append(piece),
      onclosetag() {
        if (open.length > 1) open.pop()
      },
    },
    { xmlMode: true },
  )
  parser.write(text)
  const isCut = open.length > 1
  parser.end()
  const found = document.children[0]
  if (found?.name !== root)
    throw fail(
      `the feed has another layout: <${root}> expected, found ${found === undefined ? 'no element' : `<${found.name}>`}`,
    )
  if (isCut) throw fail('the feed ends in the middle, as if it had been cut off')
  return found
}
