/** Names of SVG and MathML as they are spelt outside HTML, whose parser reads them in lower case. */
import type { PageIndex } from './page-index.ts'
import { KNOWN, knownTagName } from './tags.ts'
import { ELEMENT, MATH, NAMESPACE, SVG } from './tree-builder.ts'

const byLowerCase = (names: string): ReadonlyMap<string, string> =>
  new Map(names.split(' ').map((name) => [name.toLowerCase(), name]))

const SVG_ELEMENTS = byLowerCase(
  'altGlyph altGlyphDef altGlyphItem animateColor animateMotion animateTransform clipPath feBlend feColorMatrix feComponentTransfer ' +
    'feComposite feConvolveMatrix feDiffuseLighting feDisplacementMap feDistantLight feDropShadow feFlood feFuncA feFuncB feFuncG ' +
    'feFuncR feGaussianBlur feImage feMerge feMergeNode feMorphology feOffset fePointLight feSpecularLighting feSpotLight feTile ' +
    'feTurbulence foreignObject glyphRef linearGradient radialGradient textPath',
)
const SVG_ATTRIBUTES = byLowerCase(
  'attributeName attributeType baseFrequency baseProfile calcMode clipPathUnits diffuseConstant edgeMode filterUnits glyphRef ' +
    'gradientTransform gradientUnits kernelMatrix kernelUnitLength keyPoints keySplines keyTimes lengthAdjust limitingConeAngle ' +
    'markerHeight markerUnits markerWidth maskContentUnits maskUnits numOctaves pathLength patternContentUnits patternTransform ' +
    'patternUnits pointsAtX pointsAtY pointsAtZ preserveAlpha preserveAspectRatio primitiveUnits refX refY repeatCount repeatDur ' +
    'requiredExtensions requiredFeatures specularConstant specularExponent spreadMethod startOffset stdDeviation stitchTiles ' +
    'surfaceScale systemLanguage tableValues targetX targetY textLength viewBox viewTarget xChannelSelector yChannelSelector ' +
    'zoomAndPan',
)

/** `unknown` are the page's own names. */
export function elementName({ tag, kind }: PageIndex, unknown: readonly string[], token: number): string {
  const id = tag[token]!
  const name = id < KNOWN ? knownTagName(id) : unknown[id - KNOWN]!
  return namespaceOf(kind[token]!) === SVG ? (SVG_ELEMENTS.get(name) ?? name) : name
}

export const namespaceOf = (kind: number): number => (kind >= ELEMENT ? Math.floor(kind / NAMESPACE) : 0)

/** The attributes of an element of that kind, with their names spelt as they should be. */
export function speltAttributes(kind: number, attributes: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const namespace = namespaceOf(kind)
  if (namespace === 0) return attributes
  return new Map([...attributes].map(([name, value]) => [speltAttribute(namespace, name), value]))
}

function speltAttribute(namespace: number, name: string): string {
  if (namespace === SVG) return SVG_ATTRIBUTES.get(name) ?? name
  return namespace === MATH && name === 'definitionurl' ? 'definitionURL' : name
}
