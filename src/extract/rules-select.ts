/** Tags in a `select`. */
import { DATA, IN_BODY, IN_HEAD } from './insertion-modes.ts'
import { ignore } from './rule-tools.ts'
import { isCell } from './rules-table.ts'
import { endTemplate, resetMode } from './rules-template.ts'
import { IS_TABLE_STRUCTURE, KNOWN, TAG } from './tags.ts'
import type { TreeBuilder } from './tree-builder.ts'

export function startInSelect(b: TreeBuilder, tag: number): number {
  const { open } = b
  const popIf = (wanted: number) => {
    if (open.top === wanted) b.pop()
  }
  if (tag === TAG.option || tag === TAG.optgroup || tag === TAG.hr) {
    popIf(TAG.option)
    if (tag !== TAG.option) popIf(TAG.optgroup)
    if (tag === TAG.hr) b.insertVoid(tag)
    else b.insertElement(tag)
    return DATA
  }
  if (tag === TAG.select || tag === TAG.input || tag === TAG.keygen || tag === TAG.textarea) {
    if (!leaveSelect(b)) return ignore(b)
    return tag === TAG.select ? ignore(b) : b.startTag(tag)
  }
  if (tag === TAG.script || tag === TAG.template) return b.startTagIn(IN_HEAD, tag)
  return tag === TAG.html ? b.startTagIn(IN_BODY, tag) : ignore(b)
}

/** Everything but `optgroup` and `option` ends the select scope. */
function leaveSelect(b: TreeBuilder): boolean {
  const { open } = b
  const depth = open.depthOf(TAG.select)
  if (depth === -1) return false
  for (let i = depth + 1; i < open.size; i++)
    if (open.elements[i] !== TAG.option && open.elements[i] !== TAG.optgroup) return false
  b.popTo(depth)
  resetMode(b)
  return true
}

export function endInSelect(b: TreeBuilder, tag: number): void {
  const { open } = b
  if (tag === TAG.optgroup) {
    if (open.top === TAG.option && open.elements[open.size - 2] === tag) b.pop()
    if (open.top === tag) b.pop()
  } else if (tag === TAG.option) {
    if (open.top === tag) b.pop()
  } else if (tag === TAG.select) leaveSelect(b)
  else if (tag === TAG.template) endTemplate(b)
}

const endsSelectInTable = (tag: number): boolean =>
  tag === TAG.caption || isCell(tag) || (tag < KNOWN && IS_TABLE_STRUCTURE[tag] === 1)

export function startInSelectInTable(b: TreeBuilder, tag: number): number {
  if (!endsSelectInTable(tag)) return startInSelect(b, tag)
  b.popThrough(TAG.select)
  resetMode(b)
  return b.startTag(tag)
}

export function endInSelectInTable(b: TreeBuilder, tag: number): void {
  if (!endsSelectInTable(tag)) endInSelect(b, tag)
  else if (b.open.hasInTableScope(tag)) {
    b.popThrough(TAG.select)
    resetMode(b)
    b.endTag(tag)
  }
}
