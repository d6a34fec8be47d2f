/** The attributes of elements, read from the page's text when they are needed. */
import { attributesOfTag, findInTag, foundValue } from './tag-attributes.ts'
import type { PageIndex } from './tree-builder.ts'

export { foundValue, valueEnd, valueStart } from './tag-attributes.ts'

/** Finds an attribute by its lower-case name; the first of several wins. The value lies at `valueStart…valueEnd`. */
export function findAttribute(index: PageIndex, token: number, name: string): boolean {
  const start = index.start[token]!
  if (start !== index.end[token]) {
    if (findInTag(index.html, start, name)) return true
    if (index.moreTags === undefined) return false
  }
  return findElsewhere(index, token, name)
}

function findElsewhere(index: PageIndex, token: number, name: string): boolean {
  const { html, moreTags } = index
  const start = sourceOf(index, token)
  if (start !== -1 && findInTag(html, start, name)) return true
  for (const tag of moreTags?.get(token) ?? []) if (findInTag(html, tag, name)) return true
  return false
}

/** Where the tag begins whose attributes an element has, or -1 for an element that no start tag stands for. */
function sourceOf({ start, end, sources }: PageIndex, token: number): number {
  if (start[token] !== end[token]) return start[token]!
  const source = sources?.get(token)
  return source === undefined ? -1 : start[source]!
}

export function attributeOf(index: PageIndex, token: number, name: string): string | undefined {
  return findAttribute(index, token, name) ? foundValue(index) : undefined
}

/** A map: an object would put names that are numbers first, and has a prototype. */
export function attributesOf(index: PageIndex, token: number): ReadonlyMap<string, string> {
  const start = sourceOf(index, token)
  const attributes = start === -1 ? new Map<string, string>() : attributesOfTag(index.html, start)
  for (const tag of index.moreTags?.get(token) ?? [])
    for (const [name, value] of attributesOfTag(index.html, tag)) if (!attributes.has(name)) attributes.set(name, value)
  return attributes
}
