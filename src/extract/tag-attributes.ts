/** The attributes of a start tag, read from its text. */
import { decodeEntities, plainText } from './entities.ts'
import { isSpace, lowerCase } from './scan.ts'

/** Where `findInTag` found the value: `html[valueStart…valueEnd)`. Module variables, so that nothing is allocated. */
export let valueStart = 0
export let valueEnd = 0

/** Steps to the next attribute from `at`; its name is `html[nameStart…nameEnd)`. Returns where to go on, or -1 at the tag's end. */
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

/** Where the attributes of the start tag that begins at `start` begin. */
function attributesStart(html: string, start: number): number {
  let i = start + 1
  for (let c = html.charCodeAt(i); c !== 62 && c !== 47 && !isSpace(c); ) c = html.charCodeAt(++i)
  return i
}

/** Finds an attribute by its lower-case name; the first of several wins. The value lies at `valueStart…valueEnd`. */
export function findInTag(html: string, start: number, name: string): boolean {
  let at = attributesStart(html, start)
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

/** The value `findInTag` has just found, decoded. */
export function foundValue({ html }: { readonly html: string }): string {
  const value = plainText(html.slice(valueStart, valueEnd))
  return value.includes('&') ? decodeEntities(value, 'attribute') : value
}

/** Of the start tag that begins at `start`. */
export function attributeOfTag(html: string, start: number, name: string): string | undefined {
  return findInTag(html, start, name) ? foundValue({ html }) : undefined
}

/** Name and value of each attribute, in the order of the tag. */
export function attributesOfTag(html: string, start: number): Map<string, string> {
  const attributes = new Map<string, string>()
  let at = attributesStart(html, start)
  while (at !== -1) {
    at = next(html, at)
    if (at === -1) break
    const name = lowerCase(html.slice(nameStart, nameEnd)).replaceAll('\0', '\uFFFD')
    if (!attributes.has(name)) attributes.set(name, foundValue({ html }))
  }
  return attributes
}
