/** Tags in the body: the mode nearly all of a page is read in. */
import {
  AFTER_AFTER_BODY,
  AFTER_BODY,
  DATA,
  IN_CAPTION,
  IN_CELL,
  IN_FRAMESET,
  IN_HEAD,
  IN_ROW,
  IN_SELECT,
  IN_SELECT_IN_TABLE,
  IN_TABLE,
  IN_TABLE_BODY,
  PLAINTEXT,
  RAW,
  RCDATA,
} from './insertion-modes.ts'
import { ANY, ignore, isHiddenInput, isVisibleCdata, rulesOf } from './rule-tools.ts'
import { insertForeign } from './rules-foreign.ts'
import { endTemplate } from './rules-template.ts'
import { isBlank } from './rules-text.ts'
import { IS_HEADING, KNOWN, knownTagId, TAG } from './tags.ts'
import { CDATA, ELEMENT_RAW, MATH, SVG, type TreeBuilder } from './tree-builder.ts'

const BLOCK = 1
const FORMATTING = 2
const VOID = 3
const HEADING = 4
const LIST_ITEM = 5
const LINK = 6
const HEAD_CONTENT = 7
const PRE = 8
const FORM = 9
const PLAIN = 10
const BUTTON = 11
const NOBR = 12
const OBJECT = 13
const TABLE = 14
const INPUT = 15
const PARAM = 16
const RULE = 17
const IMAGE = 18
const TEXTAREA = 19
const XMP = 20
const IFRAME = 21
const NO_FRAMES = 22
const SELECT = 23
const OPTION = 24
const RUBY_BASE = 25
const RUBY_TEXT = 26
const MATHML = 27
const SVG_ROOT = 28
const IGNORED = 29
const HTML = 30
const BODY = 31
const FRAMESET = 32

const START_IN_BODY = rulesOf({
  [BLOCK]:
    'address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer header hgroup main menu nav ol p ' +
    'search section summary ul',
  [FORMATTING]: 'b big code em font i s small strike strong tt u',
  [VOID]: 'area br embed img keygen wbr',
  [HEADING]: 'h1 h2 h3 h4 h5 h6',
  [LIST_ITEM]: 'dd dt li',
  [LINK]: 'a',
  [HEAD_CONTENT]: 'base basefont bgsound link meta script style template title',
  [PRE]: 'listing pre',
  [FORM]: 'form',
  [PLAIN]: 'plaintext',
  [BUTTON]: 'button',
  [NOBR]: 'nobr',
  [OBJECT]: 'applet marquee object',
  [TABLE]: 'table',
  [INPUT]: 'input',
  [PARAM]: 'param source track',
  [RULE]: 'hr',
  [IMAGE]: 'image',
  [TEXTAREA]: 'textarea',
  [XMP]: 'xmp',
  [IFRAME]: 'iframe',
  [NO_FRAMES]: 'noembed noframes',
  [SELECT]: 'select',
  [OPTION]: 'optgroup option',
  [RUBY_BASE]: 'rb rtc',
  [RUBY_TEXT]: 'rp rt',
  [MATHML]: 'math',
  [SVG_ROOT]: 'svg',
  [IGNORED]: 'caption col colgroup frame head tbody td tfoot th thead tr',
  [HTML]: 'html',
  [BODY]: 'body',
  [FRAMESET]: 'frameset',
})

export function startInBody(b: TreeBuilder, tag: number): number {
  const { open } = b
  switch (tag < KNOWN ? START_IN_BODY[tag] : ANY) {
    case ANY:
      if (b.mayReconstruct) b.reconstruct()
      b.insertElement(tag)
      return DATA
    case BLOCK:
      if (open.hasPInButtonScope()) b.closeP()
      b.insertElement(tag)
      return DATA
    case FORMATTING:
      if (b.mayReconstruct) b.reconstruct()
      b.insertElement(tag)
      b.pushFormatting()
      return DATA
    case VOID:
      if (b.mayReconstruct) b.reconstruct()
      b.insertVoid(tag)
      b.isFramesetOk = false
      return DATA
    case HEADING:
      if (open.hasPInButtonScope()) b.closeP()
      if (open.top < KNOWN && IS_HEADING[open.top] === 1) b.pop()
      b.insertElement(tag)
      return DATA
    case LIST_ITEM: {
      b.isFramesetOk = false
      const depth = tag === TAG.li ? open.depthOf(tag) : Math.max(open.depthOf(TAG.dd), open.depthOf(TAG.dt))
      if (depth !== -1 && !open.hasListItemBoundaryAbove(depth)) {
        b.generateImpliedEndTags(open.elements[depth])
        b.popTo(depth)
      }
      if (open.hasPInButtonScope()) b.closeP()
      b.insertElement(tag)
      return DATA
    }
    case LINK:
      b.replaceFormatting(tag)
      if (b.mayReconstruct) b.reconstruct()
      b.insertElement(tag)
      b.pushFormatting()
      return DATA
    case HEAD_CONTENT:
      return b.startTagIn(IN_HEAD, tag)
    case PRE:
      if (open.hasPInButtonScope()) b.closeP()
      b.insertElement(tag)
      b.isFramesetOk = false
      return DATA
    case FORM:
      if (b.form !== -1 && !open.isOpen(TAG.template)) return ignore(b)
      if (open.hasPInButtonScope()) b.closeP()
      b.insertElement(tag)
      if (!open.isOpen(TAG.template)) b.form = open.topToken
      return DATA
    case PLAIN:
      if (open.hasPInButtonScope()) b.closeP()
      b.insertElement(tag, ELEMENT_RAW)
      return PLAINTEXT
    case BUTTON:
      if (open.hasInScope(tag)) {
        b.generateImpliedEndTags()
        b.popThrough(tag)
      }
      if (b.mayReconstruct) b.reconstruct()
      b.insertElement(tag)
      b.isFramesetOk = false
      return DATA
    case NOBR:
      if (b.mayReconstruct) b.reconstruct()
      if (open.hasInScope(tag)) {
        b.adopt(tag)
        if (b.mayReconstruct) b.reconstruct()
      }
      b.insertElement(tag)
      b.pushFormatting()
      return DATA
    case OBJECT:
      if (b.mayReconstruct) b.reconstruct()
      b.insertElement(tag)
      b.pushMarker()
      b.isFramesetOk = false
      return DATA
    case TABLE:
      if (!b.isQuirks && open.hasPInButtonScope()) b.closeP()
      b.insertElement(tag)
      b.isFramesetOk = false
      b.mode = IN_TABLE
      return DATA
    case INPUT:
      if (b.mayReconstruct) b.reconstruct()
      b.insertVoid(tag)
      if (!isHiddenInput(b)) b.isFramesetOk = false
      return DATA
    case PARAM:
      b.insertVoid(tag)
      return DATA
    case RULE:
      if (open.hasPInButtonScope()) b.closeP()
      b.insertVoid(tag)
      b.isFramesetOk = false
      return DATA
    case IMAGE:
      return startInBody(b, TAG.img)
    case TEXTAREA:
      b.insertElement(tag)
      b.isFramesetOk = false
      return RCDATA
    case XMP:
      if (open.hasPInButtonScope()) b.closeP()
      if (b.mayReconstruct) b.reconstruct()
      b.isFramesetOk = false
      b.insertElement(tag, ELEMENT_RAW)
      return RAW
    case IFRAME:
      b.isFramesetOk = false
      b.insertElement(tag, ELEMENT_RAW)
      return RAW
    case NO_FRAMES:
      b.insertElement(tag, ELEMENT_RAW)
      return RAW
    case SELECT:
      if (b.mayReconstruct) b.reconstruct()
      b.insertElement(tag)
      b.isFramesetOk = false
      b.mode = isTableMode(b.mode) ? IN_SELECT_IN_TABLE : IN_SELECT
      return DATA
    case OPTION:
      if (open.top === TAG.option) b.pop()
      if (b.mayReconstruct) b.reconstruct()
      b.insertElement(tag)
      return DATA
    case RUBY_BASE:
      if (open.hasInScope(TAG.ruby)) b.generateImpliedEndTags()
      b.insertElement(tag)
      return DATA
    case RUBY_TEXT:
      if (open.hasInScope(TAG.ruby)) b.generateImpliedEndTags(TAG.rtc)
      b.insertElement(tag)
      return DATA
    case MATHML:
    case SVG_ROOT:
      if (b.mayReconstruct) b.reconstruct()
      return insertForeign(b, tag, tag === TAG.svg ? SVG : MATH)
    case HTML:
      if (!open.isOpen(TAG.template)) b.addAttributes(open.tokens[0]!)
      return ignore(b)
    case BODY:
      if (open.size > 1 && open.elements[1] === tag && !open.isOpen(TAG.template)) {
        b.isFramesetOk = false
        b.addAttributes(open.tokens[1]!)
      }
      return ignore(b)
    case FRAMESET:
      if (!b.isFramesetOk || open.size < 2 || open.elements[1] !== TAG.body || hasVisibleText(b)) return ignore(b)
      b.link(b.at)
      b.links!.detach(open.tokens[1]!)
      b.popTo(1)
      b.insertElement(tag)
      b.mode = IN_FRAMESET
      return DATA
    default:
      return ignore(b)
  }
}

const isTableMode = (mode: number): boolean =>
  mode === IN_TABLE || mode === IN_CAPTION || mode === IN_TABLE_BODY || mode === IN_ROW || mode === IN_CELL

/** In the body, texts are not looked at as they pass: a frameset, which no visible text may precede, looks at them now. */
function hasVisibleText(b: TreeBuilder): boolean {
  if (b.links !== undefined) return false // there every text was looked at
  const { start, end, kind, tag } = b.tokens
  for (let token = b.open.tokens[1]!; token < b.count; token++) {
    if (kind[token] === CDATA && isVisibleCdata(b.html, start[token]!, end[token]!)) return true
    if (kind[token] === ELEMENT_RAW || tag[token] === TAG.title) continue
    const to = token + 1 < b.count ? start[token + 1]! : b.at
    if (!isBlank(b, end[token]!, to)) return true
  }
  return false
}
const END_BLOCK = 1
const END_FORMATTING = 2
const END_P = 3
const END_LI = 4
const END_DD = 5
const END_HEADING = 6
const END_OBJECT = 7
const END_FORM = 8
const END_BR = 9
const END_BODY = 10
const END_HTML = 11
const END_TEMPLATE = 12

const END_IN_BODY = rulesOf({
  [END_BLOCK]:
    'address article aside blockquote button center details dialog dir div dl fieldset figcaption figure footer header hgroup listing ' +
    'main menu nav ol pre search section summary ul',
  [END_FORMATTING]: 'a b big code em font i nobr s small strike strong tt u',
  [END_P]: 'p',
  [END_LI]: 'li',
  [END_DD]: 'dd dt',
  [END_HEADING]: 'h1 h2 h3 h4 h5 h6',
  [END_OBJECT]: 'applet marquee object',
  [END_FORM]: 'form',
  [END_BR]: 'br',
  [END_BODY]: 'body',
  [END_HTML]: 'html',
  [END_TEMPLATE]: 'template',
})

export function endInBody(b: TreeBuilder, tag: number): void {
  const { open } = b
  switch (tag < KNOWN ? END_IN_BODY[tag] : ANY) {
    case ANY:
      b.closeAny(tag)
      return
    case END_BLOCK:
      if (!open.hasInScope(tag)) return
      b.generateImpliedEndTags()
      b.popThrough(tag)
      return
    case END_FORMATTING:
      if (!b.closeFormatting(tag)) b.adopt(tag)
      return
    case END_P:
      if (!open.hasPInButtonScope()) b.insertImplied(tag)
      b.closeP()
      return
    case END_LI:
      if (!open.hasLiInListScope()) return
      b.generateImpliedEndTags(tag)
      b.popThrough(tag)
      return
    case END_DD:
      if (!open.hasInScope(tag)) return
      b.generateImpliedEndTags(tag)
      b.popThrough(tag)
      return
    case END_HEADING: {
      let depth = -1
      for (let i = 0; i < 6; i++) depth = Math.max(depth, open.depthOf(FIRST_HEADING + i))
      if (!open.isInScope(depth)) return
      b.generateImpliedEndTags()
      b.popTo(depth)
      return
    }
    case END_OBJECT:
      if (!open.hasInScope(tag)) return
      b.generateImpliedEndTags()
      b.popThrough(tag)
      b.clearToMarker()
      return
    case END_FORM: {
      const isInTemplate = open.isOpen(TAG.template)
      const { form } = b
      if (!isInTemplate) b.form = -1
      if ((form === -1 && !isInTemplate) || !open.hasInScope(tag)) return
      b.generateImpliedEndTags()
      if (isInTemplate) b.popThrough(tag)
      else {
        const depth = open.depthOfToken(form, 0)
        if (depth !== -1) b.remove(depth)
      }
      return
    }
    case END_BR:
      if (b.mayReconstruct) b.reconstruct()
      b.insertImplied(tag)
      b.pop()
      b.isFramesetOk = false
      return
    case END_BODY:
      if (open.hasInScope(tag)) b.mode = AFTER_BODY
      return
    case END_HTML:
      if (open.hasInScope(TAG.body)) b.mode = AFTER_AFTER_BODY
      return
    default:
      endTemplate(b)
  }
}

const FIRST_HEADING = knownTagId('h1')
