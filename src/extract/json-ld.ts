/** JSON-LD blocks (`<script type="application/ld+json">`), flattened to a list of nodes. */
import { parseLooseJson } from './json-ld-repair.ts'

/** More nodes than this cannot describe one page. */
const NODES_MAX = 10_000

type Node = Record<string, unknown>

/** The nodes of one block, with arrays and `@graph` flattened; none if it is beyond repair. Nodes are never merged or copied. */
export function jsonLdNodes(block: string, type?: string): Node[] {
  const nodes: Node[] = []
  const waiting: unknown[] = [parseLooseJson(block)]
  // An explicit stack: a block may be nested arbitrarily deep.
  while (waiting.length > 0 && nodes.length < NODES_MAX) {
    const value = waiting.pop()
    if (Array.isArray(value)) {
      for (let i = value.length - 1; i >= 0; i--) waiting.push(value[i])
    } else if (typeof value === 'object' && value !== null) {
      const node = value as Node
      const graph = Object.hasOwn(node, '@graph') ? node['@graph'] : undefined
      if (graph !== undefined) waiting.push(graph)
      const isWrapper = graph !== undefined && !Object.hasOwn(node, '@type')
      if (!isWrapper && (type === undefined || hasType(node, type))) nodes.push(node)
    }
  }
  return nodes
}

/** `Product`, `["Product", "Thing"]`, `schema:Product` and `https://schema.org/Product` are all a Product. */
function hasType(node: Node, type: string): boolean {
  const types = Object.hasOwn(node, '@type') ? node['@type'] : undefined
  const isType = (name: unknown): boolean =>
    typeof name === 'string' &&
    (name === type || name.replace(/^(?:https?:\/\/(?:www\.)?schema\.org\/|schema:)/, '') === type)
  return Array.isArray(types) ? types.some(isType) : isType(types)
}
