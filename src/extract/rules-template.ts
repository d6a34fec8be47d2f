/** Templates, and the mode that follows from what is open. */
import {
  AFTER_HEAD,
  BEFORE_HEAD,
  IN_BODY,
  IN_CAPTION,
  IN_CELL,
  IN_COLUMN_GROUP,
  IN_FRAMESET,
  IN_HEAD,
  IN_ROW,
  IN_SELECT,
  IN_SELECT_IN_TABLE,
  IN_TABLE,
  IN_TABLE_BODY,
} from './insertion-modes.ts'
import { ANY } from './rule-tools.ts'
import { HEAD_HEAD, HEAD_HTML, HEAD_NOSCRIPT, START_IN_HEAD } from './rules-head.ts'
import { GROUP, isCell, isTableGroup, START_IN_TABLE, TABLE_CAPTION, TABLE_COLGROUP } from './rules-table.ts'
import { KNOWN, TAG } from './tags.ts'
import type { TreeBuilder } from './tree-builder.ts'

export function startInTemplate(b: TreeBuilder, tag: number): number {
  const rule = tag < KNOWN ? START_IN_HEAD[tag]! : ANY
  if (rule !== ANY && rule !== HEAD_NOSCRIPT && rule !== HEAD_HEAD && rule !== HEAD_HTML)
    return b.startTagIn(IN_HEAD, tag)
  const part = tag < KNOWN ? START_IN_TABLE[tag] : ANY
  b.mode =
    tag === TAG.col
      ? IN_COLUMN_GROUP
      : tag === TAG.tr
        ? IN_TABLE_BODY
        : isCell(tag)
          ? IN_ROW
          : part === GROUP || part === TABLE_CAPTION || part === TABLE_COLGROUP
            ? IN_TABLE
            : IN_BODY
  b.templateModes[b.templateModes.length - 1] = b.mode
  return b.startTag(tag)
}

export function endTemplate(b: TreeBuilder): void {
  const { open } = b
  if (!open.isOpen(TAG.template)) return
  b.generateAllImpliedEndTags()
  b.popThrough(TAG.template)
  b.clearToMarker()
  b.templateModes.pop()
  resetMode(b)
}

/** From the innermost open element that has a mode of its own. */
export function resetMode(b: TreeBuilder): void {
  const { open } = b
  for (let depth = open.size - 1; depth >= 0; depth--) {
    const mode = modeInside(b, open.elements[depth]!, depth)
    if (mode === -1) continue
    b.mode = mode
    return
  }
  b.mode = IN_BODY
}

function modeInside(b: TreeBuilder, tag: number, depth: number): number {
  if (tag === TAG.select) {
    const table = b.open.depthOf(TAG.table)
    return depth > 0 && table > 0 && table > b.open.depthOf(TAG.template) ? IN_SELECT_IN_TABLE : IN_SELECT
  }
  if (isCell(tag)) return depth > 0 ? IN_CELL : -1
  if (tag === TAG.tr) return IN_ROW
  if (isTableGroup(tag)) return IN_TABLE_BODY
  if (tag === TAG.caption) return IN_CAPTION
  if (tag === TAG.colgroup) return IN_COLUMN_GROUP
  if (tag === TAG.table) return IN_TABLE
  if (tag === TAG.template) return b.templateModes.at(-1)!
  if (tag === TAG.head) return IN_HEAD
  if (tag === TAG.body) return IN_BODY
  if (tag === TAG.frameset) return IN_FRAMESET
  if (tag === TAG.html) return b.head === -1 ? BEFORE_HEAD : AFTER_HEAD
  return -1
}
