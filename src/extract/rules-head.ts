/** Tags before and in the head, up to the body. */
import {
  AFTER_HEAD,
  BEFORE_HEAD,
  BEFORE_HTML,
  DATA,
  IN_BODY,
  IN_FRAMESET,
  IN_HEAD,
  IN_HEAD_NOSCRIPT,
  IN_TEMPLATE,
  RAW,
  RCDATA,
  SCRIPT,
} from './insertion-modes.ts'
import { ANY, ignore, rulesOf } from './rule-tools.ts'
import { KNOWN, TAG } from './tags.ts'
import { ELEMENT_RAW, type TreeBuilder } from './tree-builder.ts'

const HEAD_VOID = 1
const HEAD_TITLE = 2
export const HEAD_NOSCRIPT = 3
const HEAD_RAW = 4
const HEAD_SCRIPT = 5
const HEAD_TEMPLATE = 6
export const HEAD_HEAD = 7
export const HEAD_HTML = 8

export const START_IN_HEAD = rulesOf({
  [HEAD_VOID]: 'base basefont bgsound link meta',
  [HEAD_TITLE]: 'title',
  [HEAD_NOSCRIPT]: 'noscript',
  [HEAD_RAW]: 'noframes style',
  [HEAD_SCRIPT]: 'script',
  [HEAD_TEMPLATE]: 'template',
  [HEAD_HEAD]: 'head',
  [HEAD_HTML]: 'html',
})

export function startInHead(b: TreeBuilder, tag: number): number {
  switch (tag < KNOWN ? START_IN_HEAD[tag] : ANY) {
    case HEAD_VOID:
      b.insertVoid(tag)
      return DATA
    case HEAD_TITLE:
      b.insertElement(tag)
      return RCDATA
    case HEAD_NOSCRIPT:
      b.insertElement(tag)
      b.mode = IN_HEAD_NOSCRIPT
      return DATA
    case HEAD_RAW:
      b.insertElement(tag, ELEMENT_RAW)
      return RAW
    case HEAD_SCRIPT:
      b.insertElement(tag, ELEMENT_RAW)
      return SCRIPT
    case HEAD_TEMPLATE:
      b.insertElement(tag)
      b.pushMarker()
      b.isFramesetOk = false
      b.hasTemplates = true
      b.mode = IN_TEMPLATE
      b.templateModes.push(IN_TEMPLATE)
      return DATA
    case HEAD_HEAD:
      return ignore(b)
    case HEAD_HTML:
      return b.startTagIn(IN_BODY, tag)
    default:
      leaveHead(b)
      return b.startTag(tag)
  }
}

export function startInHeadNoscript(b: TreeBuilder, tag: number): number {
  if (tag === TAG.html) return b.startTagIn(IN_BODY, tag)
  if (tag === TAG.noscript || tag === TAG.head) return ignore(b)
  const rule = tag < KNOWN ? START_IN_HEAD[tag] : ANY
  if (rule === HEAD_RAW || (rule === HEAD_VOID && tag !== TAG.base)) return startInHead(b, tag)
  b.pop()
  b.mode = IN_HEAD
  return b.startTag(tag)
}

export function startAfterHead(b: TreeBuilder, tag: number): number {
  if (tag === TAG.html) return b.startTagIn(IN_BODY, tag)
  if (tag === TAG.body) {
    b.insertElement(tag)
    b.isFramesetOk = false
    b.mode = IN_BODY
    return DATA
  }
  if (tag === TAG.frameset) {
    b.insertElement(tag)
    b.mode = IN_FRAMESET
    return DATA
  }
  const rule = tag < KNOWN ? START_IN_HEAD[tag]! : ANY
  if (rule !== ANY && rule !== HEAD_NOSCRIPT && rule !== HEAD_HEAD) {
    b.link(b.at) // it goes into the head, in front of the white space after it
    b.open.push(b.head, TAG.head, 0)
    const next = startInHead(b, tag)
    b.remove(b.open.depthOfToken(b.head, b.open.size - 1))
    return next
  }
  if (rule === HEAD_HEAD) return ignore(b)
  openBody(b)
  return b.startTagIn(IN_BODY, tag)
}

export function leaveHead(b: TreeBuilder): void {
  b.pop()
  b.mode = AFTER_HEAD
}

export function openBody(b: TreeBuilder, at = b.at): void {
  b.insertImplied(TAG.body, at)
  b.mode = IN_BODY
}

export function openHead(b: TreeBuilder, at = b.at): void {
  b.head = b.insertImplied(TAG.head, at)
  b.mode = IN_HEAD
}

/** A page without a doctype. */
export function beforeHtml(b: TreeBuilder): void {
  b.isQuirks = true
  b.mode = BEFORE_HTML
}

export function openHtml(b: TreeBuilder, at = b.at): void {
  b.insertImplied(TAG.html, at)
  b.mode = BEFORE_HEAD
}
