/** The HTML standard's tree construction, with scripting disabled: which rules a tag, text or comment is treated by. */
import { isQuirks, parseDoctype } from './doctype.ts'
import {
  AFTER_AFTER_BODY,
  AFTER_AFTER_FRAMESET,
  AFTER_BODY,
  AFTER_FRAMESET,
  AFTER_HEAD,
  BEFORE_HEAD,
  BEFORE_HTML,
  DATA,
  IN_BODY,
  IN_CAPTION,
  IN_CELL,
  IN_COLUMN_GROUP,
  IN_FRAMESET,
  IN_HEAD,
  IN_HEAD_NOSCRIPT,
  IN_ROW,
  IN_SELECT,
  IN_SELECT_IN_TABLE,
  IN_TABLE,
  IN_TABLE_BODY,
  IN_TEMPLATE,
  INITIAL,
} from './insertion-modes.ts'
import { ignore, isVisibleCdata } from './rule-tools.ts'
import { endInBody, startInBody } from './rules-body.ts'
import { endInForeign, isForeignStart, startInForeign } from './rules-foreign.ts'
import {
  beforeHtml,
  leaveHead,
  openBody,
  openHead,
  openHtml,
  startAfterHead,
  startInHead,
  startInHeadNoscript,
} from './rules-head.ts'
import { endInSelect, endInSelectInTable, startInSelect, startInSelectInTable } from './rules-select.ts'
import {
  endInCaption,
  endInCell,
  endInRow,
  endInTable,
  endInTableBody,
  leaveColumnGroup,
  startInCaption,
  startInCell,
  startInColumnGroup,
  startInRow,
  startInTable,
  startInTableBody,
} from './rules-table.ts'
import { endTemplate, resetMode, startInTemplate } from './rules-template.ts'
import { TAG } from './tags.ts'
import { CDATA, COMMENT, DOCTYPE, type TagRules, type TreeBuilder } from './tree-builder.ts'

/** A start tag. Returns what the lexer reads next. */
export function onStartTag(b: TreeBuilder, tag: number): number {
  if (b.open.topNamespace !== 0 && isForeignStart(b, tag)) return startInForeign(b, tag)
  return b.mode === IN_BODY ? startInBody(b, tag) : start(b, b.mode, tag)
}

function startInFrameset(b: TreeBuilder, tag: number): number {
  if (tag === TAG.html) return startInBody(b, tag)
  if (tag === TAG.frameset) b.insertElement(tag)
  else if (tag === TAG.frame) b.insertVoid(tag)
  else if (tag === TAG.noframes) return startInHead(b, tag)
  else return ignore(b)
  return DATA
}

function startAfterFrameset(b: TreeBuilder, tag: number): number {
  if (tag === TAG.html) return startInBody(b, tag)
  return tag === TAG.noframes ? startInHead(b, tag) : ignore(b)
}

function start(b: TreeBuilder, mode: number, tag: number): number {
  switch (mode) {
    case IN_BODY:
      return startInBody(b, tag)
    case IN_CELL:
      return startInCell(b, tag)
    case IN_CAPTION:
      return startInCaption(b, tag)
    case IN_SELECT:
      return startInSelect(b, tag)
    case IN_SELECT_IN_TABLE:
      return startInSelectInTable(b, tag)
    case INITIAL:
      beforeHtml(b)
      return start(b, b.mode, tag)
    case BEFORE_HTML:
      if (tag === TAG.html) {
        b.insertElement(tag)
        b.mode = BEFORE_HEAD
        return DATA
      }
      openHtml(b)
      return start(b, b.mode, tag)
    case BEFORE_HEAD:
      if (tag === TAG.html) return startInBody(b, tag)
      if (tag === TAG.head) {
        b.head = b.insertElement(tag)
        b.mode = IN_HEAD
        return DATA
      }
      openHead(b)
      return start(b, b.mode, tag)
    case IN_HEAD:
      return startInHead(b, tag)
    case IN_HEAD_NOSCRIPT:
      return startInHeadNoscript(b, tag)
    case AFTER_HEAD:
      return startAfterHead(b, tag)
    case IN_TABLE:
      return startInTable(b, tag)
    case IN_COLUMN_GROUP:
      return startInColumnGroup(b, tag)
    case IN_TABLE_BODY:
      return startInTableBody(b, tag)
    case IN_ROW:
      return startInRow(b, tag)
    case IN_TEMPLATE:
      return startInTemplate(b, tag)
    case IN_FRAMESET:
      return startInFrameset(b, tag)
    case AFTER_FRAMESET:
    case AFTER_AFTER_FRAMESET:
      return startAfterFrameset(b, tag)
    default: // after the body
      if (tag === TAG.html) return startInBody(b, tag)
      b.mode = IN_BODY
      return startInBody(b, tag)
  }
}

/** An end tag; -1 for a name that no start tag of the page had. It leaves no node, and text after it is outside what it ends. */
export function onEndTag(b: TreeBuilder, tag: number): void {
  if (tag === -1) {
    if (b.mode === INITIAL) beforeHtml(b)
    if (b.mode === AFTER_BODY || b.mode === AFTER_AFTER_BODY) b.mode = IN_BODY
    if (b.mode === IN_COLUMN_GROUP && b.open.topNamespace === 0) leaveColumnGroup(b)
  } else if (b.open.topNamespace !== 0) endInForeign(b, tag)
  else if (b.mode === IN_BODY) endInBody(b, tag)
  else end(b, b.mode, tag)
  b.drop(b.at, b.end)
}

const opensBody = (tag: number): boolean => tag === TAG.html || tag === TAG.body || tag === TAG.br

function end(b: TreeBuilder, mode: number, tag: number): void {
  const { open } = b
  switch (mode) {
    case IN_BODY:
      endInBody(b, tag)
      return
    case IN_CELL:
      endInCell(b, tag)
      return
    case IN_CAPTION:
      endInCaption(b, tag)
      return
    case IN_SELECT:
      endInSelect(b, tag)
      return
    case IN_SELECT_IN_TABLE:
      endInSelectInTable(b, tag)
      return
    case INITIAL:
      beforeHtml(b)
      end(b, b.mode, tag)
      return
    case BEFORE_HTML:
      if (!opensBody(tag) && tag !== TAG.head) return
      openHtml(b)
      end(b, b.mode, tag)
      return
    case BEFORE_HEAD:
      if (!opensBody(tag) && tag !== TAG.head) return
      openHead(b)
      end(b, b.mode, tag)
      return
    case IN_HEAD:
      if (tag === TAG.head) leaveHead(b)
      else if (tag === TAG.template) endTemplate(b)
      else if (opensBody(tag)) {
        leaveHead(b)
        end(b, b.mode, tag)
      }
      return
    case IN_HEAD_NOSCRIPT:
      if (tag !== TAG.noscript && tag !== TAG.br) return
      b.pop()
      b.mode = IN_HEAD
      if (tag === TAG.br) end(b, b.mode, tag)
      return
    case AFTER_HEAD:
      if (tag === TAG.template) endTemplate(b)
      else if (opensBody(tag)) {
        openBody(b)
        endInBody(b, tag)
      }
      return
    case IN_TABLE:
      endInTable(b, tag)
      return
    case IN_COLUMN_GROUP:
      if (tag === TAG.template) endTemplate(b)
      else if (tag === TAG.colgroup) leaveColumnGroup(b)
      else if (tag !== TAG.col && leaveColumnGroup(b)) end(b, b.mode, tag)
      return
    case IN_TABLE_BODY:
      endInTableBody(b, tag)
      return
    case IN_ROW:
      endInRow(b, tag)
      return
    case IN_TEMPLATE:
      if (tag === TAG.template) endTemplate(b)
      return
    case AFTER_BODY:
      if (tag === TAG.html) b.mode = AFTER_AFTER_BODY
      else {
        b.mode = IN_BODY
        endInBody(b, tag)
      }
      return
    case IN_FRAMESET:
      if (tag !== TAG.frameset || open.size === 1) return
      b.pop()
      if (open.top !== TAG.frameset) b.mode = AFTER_FRAMESET
      return
    case AFTER_FRAMESET:
      if (tag === TAG.html) b.mode = AFTER_AFTER_FRAMESET
      return
    case AFTER_AFTER_BODY:
      b.mode = IN_BODY
      endInBody(b, tag)
      return
    default:
      return
  }
}

export function onComment(b: TreeBuilder): void {
  const { mode } = b
  const isInForeignNode = b.open.topNamespace !== 0
  if (!isInForeignNode && mode === AFTER_BODY) b.addComment(COMMENT, b.open.tokens[0]!)
  else if (!isInForeignNode && (mode === AFTER_AFTER_BODY || mode === AFTER_AFTER_FRAMESET)) b.addComment(COMMENT, -1)
  else b.addComment(COMMENT, b.current)
}

export function onCdata(b: TreeBuilder): void {
  if (isVisibleCdata(b.html, b.at, b.end)) b.isFramesetOk = false
  b.addComment(CDATA, b.current)
}

export function onDoctype(b: TreeBuilder): void {
  if (b.mode !== INITIAL) {
    b.drop(b.at, b.end)
    return
  }
  b.addComment(DOCTYPE, -1)
  const source = b.html.slice(b.at, b.end)
  b.isQuirks = source !== '<!DOCTYPE html>' && source !== '<!doctype html>' && isQuirks(parseDoctype(source))
  b.mode = BEFORE_HTML
}

/** The end of the page: what is missing is there all the same. */
export function onEndOfPage(b: TreeBuilder): void {
  b.at = b.end = b.html.length
  while (b.templateModes.length > 0 && b.open.isOpen(TAG.template)) {
    b.popThrough(TAG.template)
    b.clearToMarker()
    b.templateModes.pop()
    resetMode(b)
  }
  if (b.mode === INITIAL) beforeHtml(b)
  if (b.mode === BEFORE_HTML) openHtml(b)
  if (b.mode === BEFORE_HEAD) openHead(b)
  if (b.mode === IN_HEAD_NOSCRIPT) {
    b.pop()
    b.mode = IN_HEAD
  }
  if (b.mode === IN_HEAD) leaveHead(b)
  if (b.mode === AFTER_HEAD) openBody(b)
}

export const TAG_RULES: TagRules = { start, end }
