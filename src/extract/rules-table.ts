/** Tags in the parts of a table. */
import {
  DATA,
  IN_BODY,
  IN_CAPTION,
  IN_CELL,
  IN_COLUMN_GROUP,
  IN_HEAD,
  IN_ROW,
  IN_TABLE,
  IN_TABLE_BODY,
} from './insertion-modes.ts'
import { ANY, ignore, isHiddenInput, rulesOf } from './rule-tools.ts'
import { endTemplate, resetMode } from './rules-template.ts'
import { IS_TABLE_STRUCTURE, KNOWN, TAG } from './tags.ts'
import type { TreeBuilder } from './tree-builder.ts'

const IN_ROWS = 1 // td th tr
export const GROUP = 2 // tbody tfoot thead
export const TABLE_CAPTION = 3
export const TABLE_COLGROUP = 4
const TABLE_COL = 5
const TABLE_TABLE = 6
const TABLE_HEAD = 7 // script style template
const TABLE_INPUT = 8
const TABLE_FORM = 9

export const START_IN_TABLE = rulesOf({
  [IN_ROWS]: 'td th tr',
  [GROUP]: 'tbody tfoot thead',
  [TABLE_CAPTION]: 'caption',
  [TABLE_COLGROUP]: 'colgroup',
  [TABLE_COL]: 'col',
  [TABLE_TABLE]: 'table',
  [TABLE_HEAD]: 'script style template',
  [TABLE_INPUT]: 'input',
  [TABLE_FORM]: 'form',
})

/** caption col colgroup tbody td tfoot th thead tr */
const isTablePart = (tag: number): boolean =>
  tag < KNOWN && START_IN_TABLE[tag]! >= IN_ROWS && START_IN_TABLE[tag]! <= TABLE_COL

export const isTableGroup = (tag: number): boolean => tag < KNOWN && START_IN_TABLE[tag] === GROUP

export const isCell = (tag: number): boolean => tag === TAG.td || tag === TAG.th

export function startInTable(b: TreeBuilder, tag: number): number {
  const { open } = b
  switch (tag < KNOWN ? START_IN_TABLE[tag] : ANY) {
    case IN_ROWS:
      b.clearBackTo(TAG.table)
      b.insertImplied(TAG.tbody)
      b.mode = IN_TABLE_BODY
      return startInTableBody(b, tag)
    case GROUP:
      b.clearBackTo(TAG.table)
      b.insertElement(tag)
      b.mode = IN_TABLE_BODY
      return DATA
    case TABLE_CAPTION:
      b.clearBackTo(TAG.table)
      b.pushMarker()
      b.insertElement(tag)
      b.mode = IN_CAPTION
      return DATA
    case TABLE_COLGROUP:
      b.clearBackTo(TAG.table)
      b.insertElement(tag)
      b.mode = IN_COLUMN_GROUP
      return DATA
    case TABLE_COL:
      b.clearBackTo(TAG.table)
      b.insertImplied(TAG.colgroup)
      b.mode = IN_COLUMN_GROUP
      return startInColumnGroup(b, tag)
    case TABLE_TABLE:
      if (!open.hasInTableScope(tag)) return ignore(b)
      b.popThrough(tag)
      resetMode(b)
      return b.startTag(tag)
    case TABLE_HEAD:
      return b.startTagIn(IN_HEAD, tag)
    case TABLE_INPUT:
      if (!isHiddenInput(b)) return startFostered(b, tag)
      b.insertVoid(tag)
      return DATA
    case TABLE_FORM:
      if (b.form !== -1 || open.isOpen(TAG.template)) return ignore(b)
      b.form = b.insertElement(tag)
      b.pop()
      if (b.links === undefined) b.drop(b.end, b.end) // what follows is not inside
      return DATA
    default:
      return startFostered(b, tag)
  }
}

function startFostered(b: TreeBuilder, tag: number): number {
  b.isFostering = true
  const next = b.startTagIn(IN_BODY, tag)
  b.isFostering = false
  return next
}

function endFostered(b: TreeBuilder, tag: number): void {
  b.isFostering = true
  b.endTagIn(IN_BODY, tag)
  b.isFostering = false
}

export function endInTable(b: TreeBuilder, tag: number): void {
  if (tag === TAG.table) {
    if (!b.open.hasInTableScope(tag)) return
    b.popThrough(tag)
    resetMode(b)
  } else if (tag === TAG.template) endTemplate(b)
  else if (!isTablePart(tag) && tag !== TAG.body && tag !== TAG.html) endFostered(b, tag)
}

export function startInColumnGroup(b: TreeBuilder, tag: number): number {
  if (tag === TAG.html) return b.startTagIn(IN_BODY, tag)
  if (tag === TAG.col) {
    b.insertVoid(tag)
    return DATA
  }
  if (tag === TAG.template) return b.startTagIn(IN_HEAD, tag)
  if (!leaveColumnGroup(b)) return ignore(b)
  return b.startTag(tag)
}

export function leaveColumnGroup(b: TreeBuilder): boolean {
  if (b.open.top !== TAG.colgroup) return false
  b.pop()
  b.mode = IN_TABLE
  return true
}

function leaveTableBody(b: TreeBuilder): boolean {
  const { open } = b
  if (!open.hasInTableScope(TAG.tbody) && !open.hasInTableScope(TAG.thead) && !open.hasInTableScope(TAG.tfoot))
    return false
  b.clearBackTo(TAG.tbody, TAG.thead, TAG.tfoot)
  b.pop()
  b.mode = IN_TABLE
  return true
}

export function startInTableBody(b: TreeBuilder, tag: number): number {
  if (tag === TAG.tr || isCell(tag)) {
    b.clearBackTo(TAG.tbody, TAG.thead, TAG.tfoot)
    b.mode = IN_ROW
    if (tag === TAG.tr) {
      b.insertElement(tag)
      return DATA
    }
    b.insertImplied(TAG.tr)
    return startInRow(b, tag)
  }
  if (!isTablePart(tag)) return startInTable(b, tag)
  return leaveTableBody(b) ? startInTable(b, tag) : ignore(b)
}

export function endInTableBody(b: TreeBuilder, tag: number): void {
  if (isTableGroup(tag)) {
    if (!b.open.hasInTableScope(tag)) return
    b.clearBackTo(TAG.tbody, TAG.thead, TAG.tfoot)
    b.pop()
    b.mode = IN_TABLE
  } else if (tag === TAG.table) {
    if (leaveTableBody(b)) endInTable(b, tag)
  } else endInTable(b, tag)
}

function leaveRow(b: TreeBuilder): boolean {
  if (!b.open.hasInTableScope(TAG.tr)) return false
  b.clearBackTo(TAG.tr)
  b.pop()
  b.mode = IN_TABLE_BODY
  return true
}

export function startInRow(b: TreeBuilder, tag: number): number {
  if (isCell(tag)) {
    b.clearBackTo(TAG.tr)
    b.insertElement(tag)
    b.mode = IN_CELL
    b.pushMarker()
    return DATA
  }
  if (!isTablePart(tag)) return startInTable(b, tag)
  return leaveRow(b) ? startInTableBody(b, tag) : ignore(b)
}

export function endInRow(b: TreeBuilder, tag: number): void {
  if (tag === TAG.tr) leaveRow(b)
  else if (tag === TAG.table) {
    if (leaveRow(b)) endInTableBody(b, tag)
  } else if (isTableGroup(tag)) {
    // As parse5 does it; the standard asks for both.
    if (leaveRow(b) || b.open.hasInTableScope(tag)) endInTableBody(b, tag)
  } else endInTable(b, tag)
}

function closeCell(b: TreeBuilder): void {
  const { open } = b
  b.generateImpliedEndTags()
  b.popTo(Math.max(open.depthOf(TAG.td), open.depthOf(TAG.th)))
  b.clearToMarker()
  b.mode = IN_ROW
}

export function startInCell(b: TreeBuilder, tag: number): number {
  if (!isTablePart(tag)) return b.startTagIn(IN_BODY, tag)
  if (!b.open.hasInTableScope(TAG.td) && !b.open.hasInTableScope(TAG.th)) return ignore(b)
  closeCell(b)
  return startInRow(b, tag)
}

export function endInCell(b: TreeBuilder, tag: number): void {
  const { open } = b
  if (isCell(tag)) {
    if (!open.hasInTableScope(tag)) return
    b.generateImpliedEndTags()
    b.popThrough(tag)
    b.clearToMarker()
    b.mode = IN_ROW
  } else if (tag < KNOWN && IS_TABLE_STRUCTURE[tag] === 1) {
    if (!open.hasInTableScope(tag)) return
    closeCell(b)
    endInRow(b, tag)
  } else if (!isTablePart(tag) && tag !== TAG.body && tag !== TAG.html) b.endTagIn(IN_BODY, tag)
}

function leaveCaption(b: TreeBuilder): boolean {
  if (!b.open.hasInTableScope(TAG.caption)) return false
  b.generateImpliedEndTags()
  b.popThrough(TAG.caption)
  b.clearToMarker()
  b.mode = IN_TABLE
  return true
}

export function startInCaption(b: TreeBuilder, tag: number): number {
  if (!isTablePart(tag)) return b.startTagIn(IN_BODY, tag)
  return leaveCaption(b) ? startInTable(b, tag) : ignore(b)
}

export function endInCaption(b: TreeBuilder, tag: number): void {
  if (tag === TAG.caption) leaveCaption(b)
  else if (tag === TAG.table) {
    if (leaveCaption(b)) endInTable(b, tag)
  } else if (!isTablePart(tag) && tag !== TAG.body && tag !== TAG.html) b.endTagIn(IN_BODY, tag)
}
