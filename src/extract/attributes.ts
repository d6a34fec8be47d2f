/** Attributes, read from a start tag's text on demand. */
import { decodeEntities } from './entities.ts'
import type { PageIndex } from './page-index.ts'
import { isSpace } from './scan.ts'

/** Where `findAttribute` found the value: `html[valueStart…valueEnd)`. Module variables, so that nothing is allocated. */
export let valueStart = 0
export let valueEnd = 0

/** Moves to the next attribute; its name is `html[nameStart…nameEnd)`. Returns where to continue, or -1 at the tag's end. */
let nameStart = 0
let nameEnd = 0
function next(html: string, from: number): number {
  let i = from
  let c = html.charCodeAt(i)
  while (c === 32 || c === 47 || (c <= 13 && isSpace(c))) c = html.charCodeAt(++i)
  if (c === 62) return -1
  nameStart = i
  c = html.charCodeAt(++i)
  while (!(c === 61 || c === 62 || c === 47 || c === 32 || (c <= 13 && isSpace(c)))) c = html.charCodeAt(++i)
  nameEnd = i
  while (c === 32 || (c <= 13 && isSpace(c))) c = html.charCodeAt(++i)
  if (c !== 61) {
    valueStart = valueEnd = nameEnd
    return i
  }
  c = html.charCodeAt(++i)
  while (c === 32 || (c <= 13 && isSpace(c))) c = html.charCodeAt(++i)
  if (c === 34 || c === 39) {
    valueStart = ++i
    valueEnd = html.indexOf(c === 34 ? '"' : "'", i)
    return valueEnd + 1
  }
  valueStart = i
  while (!(c === 62 || c === 32 || (c <= 13 && isSpace(c)))) c = html.charCodeAt(++i)
  valueEnd = i
  return i
}

/** Where the attributes of the start tag at `token` begin, or -1 for an element created by an end tag. */
function attributesStart(index: PageIndex, token: number): number {
  const { html } = index
  let i = index.start[token]! + 1
  if (html.charCodeAt(i) === 47) return -1
  for (let c = html.charCodeAt(i); c !== 62 && c !== 47 && !isSpace(c); ) c = html.charCodeAt(++i)
  return i
}

/** Finds an attribute by its lower-case name; the first of several wins. The value is at `valueStart…valueEnd`. */
export function findAttribute(index: PageIndex, token: number, name: string): boolean {
  const { html } = index
  let at = attributesStart(index, token)
  while (at !== -1) {
    at = next(html, at)
    if (at !== -1 && nameEnd - nameStart === name.length && nameIs(html, name)) return true
  }
  return false
}

function nameIs(html: string, name: string): boolean {
  for (let i = 0; i < name.length; i++) {
    const c = html.charCodeAt(nameStart + i)
    if ((c >= 65 && c <= 90 ? c | 32 : c) !== name.charCodeAt(i)) return false
  }
  return true
}

/** The value `findAttribute` has just found, decoded. */
export function foundValue(index: PageIndex): string {
  const value = index.html.slice(valueStart, valueEnd)
  return value.includes('&') ? decodeEntities(value, 'attribute') : value
}

export function attributeOf(index: PageIndex, token: number, name: string): string | undefined {
  return findAttribute(index, token, name) ? foundValue(index) : undefined
}

/** All attributes; the object has no prototype, so `__proto__` is a name like any other. */
export function attributesOf(index: PageIndex, token: number): Record<string, string> {
  const { html } = index
  const attributes: Record<string, string> = Object.create(null)
  let at = attributesStart(index, token)
  while (at !== -1) {
    at = next(html, at)
    if (at === -1) break
    const name = html.slice(nameStart, nameEnd).toLowerCase()
    if (!(name in attributes)) attributes[name] = foundValue(index)
  }
  return attributes
}
