/** Text: where it goes in each insertion mode, and what of it is left out. */
import {
  AFTER_AFTER_BODY,
  AFTER_AFTER_FRAMESET,
  AFTER_BODY,
  AFTER_FRAMESET,
  AFTER_HEAD,
  BEFORE_HEAD,
  BEFORE_HTML,
  IN_BODY,
  IN_COLUMN_GROUP,
  IN_FRAMESET,
  IN_HEAD,
  IN_HEAD_NOSCRIPT,
  IN_ROW,
  IN_SELECT,
  IN_SELECT_IN_TABLE,
  IN_TABLE,
  IN_TABLE_BODY,
  INITIAL,
} from './insertion-modes.ts'
import { isInForeign } from './rules-foreign.ts'
import { beforeHtml, leaveHead, openBody, openHead, openHtml } from './rules-head.ts'
import { leaveColumnGroup } from './rules-table.ts'
import { isSpace } from './scan.ts'
import { IS_TABLE_STRUCTURE, KNOWN, TAG } from './tags.ts'
import type { TreeBuilder } from './tree-builder.ts'

/** Text that is raw in its element: scripts, styles, titles. */
export function rawText(b: TreeBuilder, from: number, to: number, kind: number): void {
  if (b.open.top === TAG.plaintext && b.mayReconstruct && to > from) {
    b.link(from)
    b.reconstruct(from)
  }
  const at = b.open.top === TAG.textarea ? afterNewline(b, from, to) : from
  b.insertText(at, to, kind)
}

/** A newline straight after `<pre>` or `<textarea>` is left out. */
export function afterNewline(b: TreeBuilder, from: number, to: number): number {
  NEWLINE.lastIndex = from
  const length = NEWLINE.exec(b.html)?.[0].length ?? 0
  if (length === 0 || from + length > to) return from
  b.drop(from, from + length)
  return from + length
}

const NEWLINE = /\r\n?|\n|&#0*10(?:;|(?!\d))|&#[xX]0*[aA](?:;|(?![\da-fA-F]))|&NewLine;/y

export const dropsNewline = (tag: number): boolean => tag === TAG.pre || tag === TAG.listing

/** Text in pieces, with a `</>` between them, which is nothing at all: if one piece does not belong in a table, none does. */
export function tableText(b: TreeBuilder, pieces: readonly (readonly [from: number, to: number])[]): void {
  const isVisible = pieces.some(([from, to]) => !isBlank(b, from, to))
  for (const [i, [from, to]] of pieces.entries()) {
    if (isVisible) {
      b.isFostering = true
      charactersInBody(b, from, to)
      b.isFostering = false
    } else b.insertText(from, to)
    if (i < pieces.length - 1) b.drop(to, to + '</>'.length)
  }
}

export function isTableText(b: TreeBuilder): boolean {
  const { top } = b.open
  const isTableMode = b.mode === IN_TABLE || b.mode === IN_TABLE_BODY || b.mode === IN_ROW
  return isTableMode && top < KNOWN && IS_TABLE_STRUCTURE[top] === 1
}

/** Text where its place has to be decided. */
export function characters(b: TreeBuilder, from: number, to: number): void {
  if (isInForeign(b)) {
    if (!isBlank(b, from, to)) b.isFramesetOk = false
    b.insertText(from, to)
    return
  }
  const space = spaceEnd(b, from, to)
  switch (b.mode) {
    case INITIAL:
    case BEFORE_HTML:
    case BEFORE_HEAD:
      if (space > from) b.drop(from, space)
      if (space === to) return
      if (b.mode === INITIAL) beforeHtml(b)
      if (b.mode === BEFORE_HTML) openHtml(b, space)
      openHead(b, space)
      characters(b, space, to)
      return
    case IN_HEAD:
    case IN_HEAD_NOSCRIPT:
    case AFTER_HEAD:
      b.insertText(from, space)
      if (space === to) return
      if (b.mode === IN_HEAD_NOSCRIPT) {
        b.pop()
        b.mode = IN_HEAD
      }
      if (b.mode === IN_HEAD) leaveHead(b)
      openBody(b, space)
      charactersInBody(b, space, to)
      return
    case IN_SELECT:
    case IN_SELECT_IN_TABLE:
      b.insertText(from, to)
      return
    case IN_TABLE:
    case IN_TABLE_BODY:
    case IN_ROW:
      if (isTableText(b)) tableText(b, [[from, to]])
      else charactersInBody(b, from, to)
      return
    case IN_COLUMN_GROUP:
      if (b.open.top !== TAG.colgroup) keepSpaces(b, from, to)
      else {
        b.insertText(from, space)
        if (space === to) return
        leaveColumnGroup(b)
        b.drop(space, space) // what follows is not inside
        characters(b, space, to)
      }
      return
    case IN_FRAMESET:
    case AFTER_FRAMESET:
    case AFTER_AFTER_FRAMESET:
      keepSpaces(b, from, to)
      return
    case AFTER_BODY:
    case AFTER_AFTER_BODY:
      if (space < to) b.mode = IN_BODY
      charactersInBody(b, from, to)
      return
    default:
      charactersInBody(b, from, to)
  }
}

function charactersInBody(b: TreeBuilder, from: number, to: number): void {
  const at = withoutNul(b, from, to)
  if (at === to) return
  if (b.mayReconstruct) b.reconstruct(at)
  if (b.isFramesetOk && !isBlank(b, at, to)) b.isFramesetOk = false
  b.insertText(at, to)
}

/** Nothing but white space and NULs. */
export function isBlank(b: TreeBuilder, from: number, to: number): boolean {
  let at = from
  for (let next = withoutNul(b, spaceEnd(b, at, to), to); next > at; next = withoutNul(b, spaceEnd(b, at, to), to))
    at = next
  return at >= to
}

function withoutNul(b: TreeBuilder, from: number, to: number): number {
  let i = from
  while (i < to && b.html.charCodeAt(i) === 0) i++
  return i
}

/** Of a text where none belongs, the white space stays. */
function keepSpaces(b: TreeBuilder, from: number, to: number): void {
  for (let at = from; at < to; ) {
    const space = spaceEnd(b, at, to)
    if (space > at) {
      if (b.mode === AFTER_AFTER_FRAMESET && b.mayReconstruct) b.reconstruct(at)
      b.insertText(at, space)
    }
    at = space
    while (at < to && spaceEnd(b, at, to) === at) at++
    if (at > space) b.drop(space, at)
  }
}

/** One past the white space at `from`, written as such or as a reference. */
function spaceEnd(b: TreeBuilder, from: number, to: number): number {
  let i = from
  while (i < to) {
    if (isSpace(b.html.charCodeAt(i))) i++
    else {
      SPACE_REFERENCE.lastIndex = i
      const length = b.html.charCodeAt(i) === 38 ? (SPACE_REFERENCE.exec(b.html)?.[0].length ?? 0) : 0
      if (length === 0 || i + length > to) return i
      i += length
    }
  }
  return i
}

const SPACE_REFERENCE =
  /&(?:#0*(?:9|10|12|13|32)(?:;|(?!\d))|#[xX]0*(?:9|[aAcCdD]|20)(?:;|(?![\da-fA-F]))|Tab;|NewLine;)/y
