/** Tags in SVG and MathML. */

import { DATA } from './insertion-modes.ts'
import { NAMESPACE_BIT } from './open-elements.ts'
import { attributeOfTag } from './tag-attributes.ts'
import { ENDS_FOREIGN, IS_MATH_TEXT, IS_SVG_INTEGRATION, isHtmlEncoding, KNOWN, TAG } from './tags.ts'
import { ELEMENT, ELEMENT_VOID, MATH, NAMESPACE, SVG, type TreeBuilder } from './tree-builder.ts'

/** In SVG and MathML, some elements contain HTML again. */
function isIntegrationPoint(b: TreeBuilder): boolean {
  const { topTag, topNamespace } = b.open
  if (topTag >= KNOWN) return false
  if (topNamespace === SVG) return IS_SVG_INTEGRATION[topTag] === 1
  if (topTag !== TAG['annotation-xml']) return IS_MATH_TEXT[topTag] === 1
  return isHtmlEncoding(attributeOfTag(b.html, b.tokens.start[b.open.topToken]!, 'encoding'))
}

/** Whether the rules of foreign content apply to a start tag here. */
export function isForeignStart(b: TreeBuilder, tag: number): boolean {
  const { topTag, topNamespace } = b.open
  if (topNamespace === MATH) {
    if (topTag < KNOWN && IS_MATH_TEXT[topTag] === 1) return tag === TAG.mglyph || tag === TAG.malignmark
    if (topTag === TAG['annotation-xml'] && tag === TAG.svg) return false
  }
  return !isIntegrationPoint(b)
}

export function startInForeign(b: TreeBuilder, tag: number): number {
  const { open } = b
  if (tag < KNOWN && (ENDS_FOREIGN[tag] === 1 || (tag === TAG.font && hasFontAttribute(b)))) {
    leaveForeign(b)
    return b.startTag(tag)
  }
  return insertForeign(b, tag, open.topNamespace)
}

function leaveForeign(b: TreeBuilder): void {
  while (b.open.topNamespace !== 0 && !isIntegrationPoint(b)) b.pop()
}

const hasFontAttribute = (b: TreeBuilder): boolean =>
  ['color', 'face', 'size'].some((name) => attributeOfTag(b.html, b.at, name) !== undefined)

export function endInForeign(b: TreeBuilder, tag: number): void {
  const { open } = b
  if (tag === TAG.p || tag === TAG.br) {
    leaveForeign(b)
    b.endTag(tag)
    return
  }
  for (let depth = open.size - 1; depth > 0 && open.elements[depth]! >> NAMESPACE_BIT !== 0; depth--) {
    if ((open.elements[depth]! & ~(3 << NAMESPACE_BIT)) !== tag) continue
    b.popTo(depth)
    return
  }
  b.endTag(tag)
}

export function isInForeign(b: TreeBuilder): boolean {
  return b.open.topNamespace !== 0 && !isIntegrationPoint(b)
}

export function insertForeign(b: TreeBuilder, tag: number, namespace: number): number {
  if (b.isSelfClosing) b.insertVoid(tag, ELEMENT_VOID + namespace * NAMESPACE)
  else b.insertElement(tag, ELEMENT + namespace * NAMESPACE)
  return DATA
}
