/** What the rules of several insertion modes use. */

import { DATA } from './insertion-modes.ts'
import { attributeOfTag } from './tag-attributes.ts'
import { KNOWN, knownTagId } from './tags.ts'
import type { TreeBuilder } from './tree-builder.ts'

/** The rule of a tag that a table does not name. */
export const ANY = 0

/** A table from tag ids to rules, from the names of the tags of each rule. */
export function rulesOf(names: Record<number, string>): Uint8Array {
  const all = new Uint8Array(KNOWN)
  for (const [rule, tags] of Object.entries(names))
    for (const tag of tags.split(' ')) all[knownTagId(tag)] = Number(rule)
  return all
}

/** The tag being read leaves nothing in the tree. */
export function ignore(b: TreeBuilder): number {
  b.drop(b.at, b.end)
  return DATA
}

export function isHiddenInput(b: TreeBuilder): boolean {
  return attributeOfTag(b.html, b.at, 'type')?.toLowerCase() === 'hidden'
}

const CDATA_START = '<![CDATA['.length

/** More than white space, in a CDATA section. */
export function isVisibleCdata(html: string, start: number, end: number): boolean {
  return /[^\t\n\f\r \0]/.test(html.slice(start + CDATA_START, end).replace(/\]\]>$/, ''))
}
